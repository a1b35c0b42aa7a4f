// What kernels and shaders sample: pictures, letters and sounds from the page, films, cameras, and what is heard.

// The pictures by their names, in textures and, for kernels on the CPU, in their memory.
export class Pictures {
    constructor(description, card, arena) {
        this.card = card;
        this.arena = arena;
        this._known = new Map();
        this._lent = new Map();
        this._changed = new Map();
        this.films = null;
    }

    // Lets kernels sample floats [height, width, 4], or the samples [samples, 2] of a sound.
    give(name, { values, width, height, sides = 4 }) {
        const known = this._known.get(name);
        this._known.set(name, { values, width, height, sides, texture: known?.texture, fresh: false });
        this._lent.delete(name);
    }

    // Has a texture filled by what a film or a camera shows.
    show(name, source, width, height) {
        const known = this._known.get(name);
        const fits = known?.texture?.kind === "bytes" && known.width === width && known.height === height;
        const texture = fits ? known.texture : this.card.texture("bytes", width, height);
        this.card.fill(texture, source);
        this._known.set(name, { values: null, width, height, sides: 4, texture, fresh: true });
    }

    extent(name, word) {
        return this._known.get(name)?.[word] ?? 1;
    }

    texture(name) {
        const picture = this._picture(name);
        if (!picture.fresh) {
            picture.texture = picture.sides === 2 ? this._sound(picture) : this._floats(picture);
            picture.fresh = true;
        }
        return picture.texture;
    }

    _picture(name) {
        if (!this._known.has(name)) this.give(name, { values: new Float32Array(4), width: 1, height: 1 });
        return this._known.get(name);
    }

    _floats({ texture, values, width, height }) {
        const fits = texture?.kind === "floats" && texture.width === width && texture.height === height;
        const made = fits ? texture : this.card.texture("floats", width, height);
        this.card.fill(made, values);
        return made;
    }

    // The samples of a sound, row after row; the last row is filled up with zeros.
    _sound({ values, width }) {
        const columns = Math.min(width, this.card.side), rows = Math.ceil(width / columns);
        const filled = new Float32Array(2 * columns * rows);
        filled.set(values);
        const made = this.card.texture("pair", columns, rows);
        this.card.fill(made, filled);
        return made;
    }

    // Lends a picture to a kernel on the CPU.
    lend(kernel, name) {
        const { values, width, height } = this._picture(name);
        if (values === null) return;
        if (!this._lent.has(name)) {
            const held = this._changed.get(name);
            const address = held?.room >= values.length ? held.address : this.arena.take(4 * values.length);
            this._changed.set(name, { address, room: Math.max(values.length, held?.room ?? 0) });
            this.arena.singles(address, values.length).set(values);
            this._lent.set(name, address);
        }
        kernel.lend(name, this._lent.get(name), width, height);
    }

    // Has a texture of somebody else sampled.
    borrow(name, texture) {
        const { width, height } = texture;
        this._known.set(name, { values: null, width, height, sides: 4, texture, fresh: true });
    }

    // Chooses the pictures of the films of a subgraph before its tick.
    run(subgraph, tick) {
        if (subgraph.films && this.films) this.films.choose(subgraph, tick, this);
    }
}
