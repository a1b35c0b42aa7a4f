// A launch on the card: the passes of a kernel, the numbers that they are given, and what they read.

// What lets a launch read strands, pictures and images: see `Player`.

export class Launch {
    // `owner` is the subgraph, with its `state` and its `images` on the card.
    constructor(record, owner, player) {
        this.record = record;
        this.owner = owner;
        this.player = player;
        this.prologue = player.kernel(record.prologue);
        this.reads = record.reads.map((read) => new Read(read, owner, player));
        this.passes = record.passes.map((pass) => new Pass(pass, this));
    }

    // Computes what is the same in the whole launch over `width` × `height` pixels, and fetches what it reads.
    begin(tick, width, height) {
        this.width = width;
        this.height = height;
        this.player.lend(this.prologue, this.owner);
        const coord = (name) => tick.coord(name);
        this.prologue.begin((name) => tick.uniform(name), coord, this.owner.state, this.record.points);
        this.answers = new Map(this.reads.map((read) => [read.record.key, read.answer(tick, this)]));
    }

    // Draws all passes. `colour` is the texture of the picture, or of outputs as floats.
    draw(tick, colour, coordinates = new Map()) {
        for (const pass of this.passes) pass.draw(tick, colour, coordinates);
    }
}

// One shader of a launch, with its block of numbers and its targets.
class Pass {
    constructor(record, launch) {
        const { card, shaders } = launch.player;
        this.record = record;
        this.launch = launch;
        this.text = shaders[record.shader];
        this._buffer = card.gl.createBuffer();
        this._words = new DataView(new ArrayBuffer(16 * Math.ceil(Math.max(1, record.numbers.length) / 4)));
        this._rows = new Map();
        this._scratch = new Map();
        // Where loops have met their limit in the last tick that noted it, which the next tick does if it is to.
        this.limit = null;
        this.notesLimit = false;
    }

    draw(tick, colour, coordinates) {
        const { launch, record } = this, { card, pictures } = launch.player, { images } = launch.owner;
        const program = card.program(this.text);
        this._fill(tick, program.block);
        const bind = (name, texture) => {
            if (program.samplers.has(name)) card.bind(program.samplers.get(name), texture);
        };
        // Making or filling a texture binds it to a unit, so all are there before any is bound.
        const rows = [
            ...record.histories.map(([name, key]) => [name, this._history(name, key)]),
            ...record.reads.map(([name, key]) => [name, launch.answers.get(key)]),
            ...record.pictures.map(([name, key]) => [name, pictures.texture(key)]),
            ...record.coords.map((name) => [`all_${name}`, coordinates.get(name)]),
        ];
        const targets = record.colours ? [[colour]] : [], copies = [];
        const read = new Set(record.images.map(([, key]) => key));
        for (const [key, plane] of record.stores) {
            const layer = images.layer(key, plane), ring = images.ring(key);
            if (read.has(key)) {
                // A texture cannot be drawn to while it is read, not even another layer of it.
                const scratch = this._spare(`${key} ${plane}`, ring);
                targets.push([scratch]);
                copies.push([scratch, ring, layer]);
            } else {
                targets.push([ring, layer]);
            }
        }
        if (record.stops) targets.push(this._limit(card, launch));
        for (const [name, key] of record.images) bind(name, images.ring(key));
        for (const [name, texture] of rows) bind(name, texture);
        card.draw(program, targets, launch.width, launch.height);
        for (const [scratch, ring, layer] of copies) card.copy(scratch, ring, layer);
    }

    _limit(card, { width, height }) {
        if (!this.notesLimit) return [null];
        this.notesLimit = false;
        this.limit ??= card.array(width, height, 1);
        return [this.limit, 0];
    }

    _spare(name, { width, height }) {
        if (!this._scratch.has(name)) this._scratch.set(name, this.launch.player.card.texture("float", width, height));
        return this._scratch.get(name);
    }

    // A ring of numbers as a texture, whose rows are as long as the card allows.
    _history(name, key) {
        const { card } = this.launch.player, numbers = this.launch.owner.state.numbers(key);
        const width = Math.min(numbers.length, card.side), height = Math.ceil(numbers.length / width);
        const values = new Float32Array(width * height);
        values.set(numbers);
        if (!this._rows.has(name)) this._rows.set(name, {});
        return card.row(this._rows.get(name), values, width, height);
    }

    _fill(tick, size) {
        const words = this._words;
        this.record.numbers.forEach(([kind, ...source], at) => {
            const value = this._number(tick, source);
            if (kind === "float") words.setFloat32(4 * at, value, true);
            else if (kind === "int") words.setInt32(4 * at, value, true);
            else words.setUint32(4 * at, kind === "bool" ? Number(value !== 0) : value, true);
        });
        const { gl } = this.launch.player.card;
        gl.bindBuffer(gl.UNIFORM_BUFFER, this._buffer);
        gl.bufferData(gl.UNIFORM_BUFFER, Math.max(size, words.byteLength), gl.STREAM_DRAW);
        gl.bufferSubData(gl.UNIFORM_BUFFER, 0, words);
        gl.bindBufferBase(gl.UNIFORM_BUFFER, 0, this._buffer);
    }

    _number(tick, [source, key, more, last]) {
        const { launch } = this, { state, width, height } = launch.owner, { points } = launch.record;
        const between = points ? 1 : 0;
        switch (source) {
            case "constant": return number(key);
            case "local": return launch.prologue.local(key);
            case "uniform": return tick.uniform(key);
            case "coord": return tick.coord(key);
            case "columns": return points ? width : launch.width;
            case "rows": return points ? height : launch.height;
            case "level": return Math.ceil((more === "columns" ? width : height) / 2 ** key);
            case "head": return state.cell(key, between);
            case "cell": return state.cell(key, more + between);
            case "past": return state.past(key, more, last + between);
            case "picture": return launch.player.pictures.extent(key, more);
        }
        throw new Error(`nothing gives ${source}`);
    }
}

// A number of JSON, where those that are not finite are texts.
export function number(given) {
    if (typeof given === "number") return given;
    return given === "inf" ? Infinity : given === "-inf" ? -Infinity : NaN;
}

// A strand of another subgraph that shaders read, at places that a kernel computes.
class Read {
    constructor(record, owner, player) {
        this.record = record;
        this.owner = owner;
        this.player = player;
        this.places = player.kernel(record.places);
        this._holder = {};
        this._known = null;
    }

    // The texture of its values in a launch.
    answer(tick, launch) {
        const { over, strand } = this.record;
        const width = over.includes("point") || over.includes("x") ? launch.width : 1;
        const height = over.includes("point") || over.includes("y") ? launch.height : 1;
        // What differs along one axis is in one row.
        const [columns, rows] = !over.includes("point") && over.length === 1 ? [width * height, 1] : [width, height];
        const places = this._at(tick, launch, columns, rows, over);
        return this.player.strand(strand).values(tick, places, columns, rows, this._holder);
    }

    // The coordinates of the reads, each a row of numbers with a stamp that stays while they do.
    _at(tick, launch, columns, rows, over) {
        const count = columns * rows, size = `${columns} ${rows}`;
        if (this.record.constant && this._known?.size === size) return this._known;
        this.player.lend(this.places, this.owner);
        this.places.begin((name) => tick.uniform(name), (name) => tick.coord(name), this.owner.state, launch.record.points);
        const line = (name) => {
            if (over.includes("point")) return launch.coordinates.get(name);
            const along = name === "x" ? launch.width : launch.height, only = over.length === 1;
            return Float64Array.from({ length: count }, (_, at) => {
                const place = only ? at : name === "x" ? at % columns : Math.floor(at / columns);
                return (place + 0.5) / along;
            });
        };
        const found = this.places.elements(count, line), outputs = this.places.layout.outputs;
        const coordinates = Array.from({ length: outputs }, (_, at) => found.slice(at * count, (at + 1) * count));
        this._known = { size, coordinates };
        return this._known;
    }
}
