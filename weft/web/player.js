// The player: runs the subgraphs of a program in order, tick by tick, and passes values between them.

import { Arena, Modules, VIEW } from "./kernels.js";
import { Pictures } from "./pictures.js";
import { Strand } from "./strands.js";
import { Numbers, Picture } from "./subgraphs.js";

// One tick: its time, and the numbers from outside.
export class Tick {
    // `inputs` gives the numbers of inputs by name; what it does not know is 0.
    constructor({ number, time, step, width, height, inputs }) {
        Object.assign(this, { number, time, step, width, height, inputs });
    }

    uniform(name) {
        switch (name) {
            case "width": return this.width;
            case "height": return this.height;
            case "absframe": return this.number;
            case "dt": return this.step;
            case "bpm": return this.time < this.inputs("beats_start") ? this.inputs("beats_bpm_before") : this.inputs("beats_bpm");
        }
        return this.inputs(name);
    }

    // The coordinate of a place that is nowhere in particular.
    coord(name) {
        if (name === "abstime") return this.time;
        if (name === "channel") return 0;
        return name === "x" || name === "y" ? 0.5 : this.uniform(name);
    }

    // The same for a subgraph, whose picture may have another size.
    of({ width, height }) {
        return width === this.width && height === this.height ? this : new Tick({ ...this, width, height });
    }
}

export class Player {
    // Plays a program on a card, in pictures of `size` instead of the patch's own. `heard` gives a function that reads a
    // strand of the sound at a time.
    constructor(description, card, { size = null, heard = () => () => 0 } = {}) {
        this.description = description;
        this.card = card;
        this.arena = new Arena();
        this._modules = new Modules(description.modules);
        this._size = size;
        this._strands = new Map();
        this._heard = heard;
        this._tick = null;
        this.pictures = new Pictures(description, card, this.arena);
        const { subgraphs } = description;
        this.shaders = description.shaders.map((pieces) => pieces.map((at) => description.pieces[at]).join("\n\n"));
        card?.prepare(this.shaders);
        this.subgraphs = subgraphs.map((record) => new (record.is === "picture" ? Picture : Numbers)(record, this));
        this.feeding = [...subgraphs, ...description.sounds].filter((record) => record.feeds)
            .map(({ feeds }) => new Numbers({ ...feeds, name: "feeds", size: [] }, this));
        for (const subgraph of this.subgraphs) {
            for (const [name, record] of Object.entries(subgraph.record.strands)) {
                this._strands.set(name, new Strand(record, subgraph, this));
            }
        }
    }

    get width() {
        return this._size?.[0] ?? this.description.settings.width;
    }

    get height() {
        return this._size?.[1] ?? this.description.settings.height;
    }

    // The width and height of the picture of a subgraph.
    sizeOf(record) {
        if (record.size.length === 0) return [this.width, this.height];
        const scale = this.width / this.description.settings.width;
        return record.size.map((side) => Math.max(1, Math.round(side * scale)));
    }

    // The kernel of a module, whose reads of strands this player answers.
    kernel(number) {
        return this._modules.kernel(number, this.arena, (name) => (...coordinates) => this._read(name, coordinates));
    }

    // Lends a kernel the pictures that it samples.
    lend(kernel, owner) {
        for (const name of kernel.layout.samples ?? []) this.pictures.lend(kernel, name);
        for (const key of kernel.layout.looks ?? []) this._lendImage(kernel, owner, key);
    }

    _lendImage(kernel, owner, key) {
        const ring = owner.images.ring(key), count = ring.width * ring.height;
        owner.copies ??= new Map();
        if (!owner.copies.has(key)) owner.copies.set(key, this.arena.take(8 * count * ring.layers));
        const address = owner.copies.get(key);
        for (let layer = 0; layer < ring.layers; layer++) {
            const read = this.card.read(ring, layer), room = this.arena.doubles(address + 8 * count * layer, count);
            for (let at = 0; at < count; at++) room[at] = read[4 * at];
        }
        kernel.lendImage(key, address, ring.width, ring.height);
    }

    _read(name, coordinates) {
        const strand = this._strands.get(name);
        return strand === undefined ? this._heard(name)(coordinates[0]) : strand.value(this._tick, coordinates);
    }

    // A strand of a subgraph, or of the sound, for textures.
    strand(name) {
        return this._strands.get(name) ?? {
            values: (tick, { coordinates: [times] }, width, height, holder) =>
                this.card.row(holder, Float32Array.from(times, this._heard(name)), width, height),
        };
    }

    // One tick of every subgraph. Gives the outputs of those that are numbers, by their labels.
    run(tick) {
        this._tick = tick;
        const numbers = new Map();
        for (const subgraph of this.subgraphs) {
            const own = tick.of(subgraph);
            this.pictures.run(subgraph, own);
            const outputs = subgraph.run(own) ?? [];
            outputs.forEach((value, at) => numbers.set(subgraph.record.labels[at], value));
        }
        return numbers;
    }

    // Forgets all that was remembered.
    clear() {
        for (const subgraph of [...this.subgraphs, ...this.feeding]) subgraph.clear();
    }

    // What the sound is fed after a tick, by the names of its coordinates.
    feeds(tick) {
        this._tick = tick;
        const found = new Map();
        for (const each of this.feeding) {
            each.run(tick).forEach((value, at) => found.set(each.record.names[at], value));
        }
        return found;
    }

    // The strands of pictures that the sound sees, with their values [height, width] after a tick.
    *views(tick) {
        const [height, width] = VIEW;
        for (const name of this.description.views) {
            const strand = this._strands.get(name.slice(1, -1));
            if (strand !== undefined) yield [name, strand.view(tick, width, height)];
        }
    }

    // The subgraphs with a picture that is shown, that of the first window first.
    get shown() {
        const order = (target) => (/^(pipe|v4l2):/.test(target) ? 2 : target ? 1 : 0);
        return this.subgraphs.filter((each) => each.record.is === "picture" && each.record.shown)
            .sort((a, b) => order(a.record.target) - order(b.record.target));
    }
}
