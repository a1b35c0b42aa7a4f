// Strands that other subgraphs read: one value, or a texture of many.

import { Launch } from "./launch.js";

export class Strand {
    // The strand of this name, which the subgraph `owner` computes.
    constructor(record, owner, player) {
        this.record = record;
        this.owner = owner;
        this.player = player;
        this._kernel = record.kernel === null ? null : player.kernel(record.kernel);
        this._launch = record.card === null ? null : new Launch(record.card, owner, player);
        this._one = {};
    }

    // Its value at some coordinates, as the last tick of its subgraph left it.
    value(tick, coordinates) {
        if (this._kernel === null) {
            const rows = coordinates.map((coordinate) => Float64Array.of(coordinate));
            const texture = this._drawn(tick.of(this.owner), rows, 1, 1, this._one);
            return this.player.card.read(texture)[0];
        }
        return this._computed(tick.of(this.owner), coordinates.map((each) => Float64Array.of(each)), 1)[0];
    }

    // A texture of its values at rows of coordinates, which the `holder` keeps: each reader has its own.
    values(tick, { coordinates }, width, height, holder) {
        const own = tick.of(this.owner);
        if (this._launch !== null) return this._drawn(own, coordinates, width, height, holder);
        const values = Float32Array.from(this._computed(own, coordinates, width * height));
        return this.player.card.row(holder, values, width, height);
    }

    // Its values [height, width] at the centres of the pixels of a picture.
    view(tick, width, height) {
        const count = width * height;
        this._places ??= [
            Float64Array.from({ length: count }, (_, at) => ((at % width) + 0.5) / width),
            Float64Array.from({ length: count }, (_, at) => (Math.floor(at / width) + 0.5) / height),
        ];
        const own = tick.of(this.owner);
        if (this._launch === null) return Float32Array.from(this._computed(own, this._places, count));
        const found = this.player.card.read(this._drawn(own, this._places, width, height, this._one));
        return Float32Array.from({ length: count }, (_, at) => found[4 * at]);
    }

    _computed(tick, coordinates, count) {
        const { over } = this.record, kernel = this._kernel;
        const given = new Map(over.map((name, at) => [name, coordinates[at]]));
        this.player.lend(kernel, this.owner);
        kernel.begin((name) => tick.uniform(name), (name) => tick.coord(name), this.owner.state, true);
        const line = (name) => given.get(name) ?? new Float64Array(count).fill(tick.coord(name));
        return kernel.elements(count, line);
    }

    _drawn(tick, coordinates, width, height, holder) {
        const { card } = this.player, { over } = this.record, size = `${width} ${height}`;
        const count = width * height;
        holder.colours ??= new Map();
        if (!holder.colours.has(size)) {
            holder.colours.set(size, { values: card.texture("floats", width, height), coordinates: new Map() });
        }
        const held = holder.colours.get(size);
        const given = new Map(over.map((name, at) => [name, coordinates[at]]));
        this._launch.coordinates = new Map();
        for (const name of new Set(this._launch.passes.flatMap((pass) => pass.record.coords))) {
            const numbers = given.get(name) ?? new Float64Array(count).fill(tick.coord(name));
            if (!held.coordinates.has(name)) held.coordinates.set(name, { holder: {}, numbers: null });
            const row = held.coordinates.get(name);
            if (row.numbers !== numbers) {
                row.numbers = numbers;
                card.row(row.holder, Float32Array.from(numbers), width, height);
            }
            this._launch.coordinates.set(name, numbers);
        }
        const textures = new Map([...held.coordinates].map(([name, { holder }]) => [name, holder.texture]));
        this._launch.begin(tick, width, height);
        this._launch.draw(tick, held.values, textures);
        return held.values;
    }
}
