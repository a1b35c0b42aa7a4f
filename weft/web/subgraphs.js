// The subgraphs that run once a tick: pictures, which the card draws, and numbers, which the CPU computes.

import { State } from "./kernels.js";
import { Launch } from "./launch.js";

// The images that a picture remembers, on the card: for each slot layers, cell after cell and plane after plane.
class Images {
    constructor(card, state, width, height) {
        this.state = state;
        this._rings = new Map();
        for (const slot of state.slots.values()) {
            if (!slot.image) continue;
            const [columns, rows] = [width, height].map((side) => Math.ceil(side / 2 ** slot.level));
            this._rings.set(slot.key, card.array(columns, rows, (slot.depth + 1) * slot.planes));
        }
    }

    ring(key) {
        return this._rings.get(key);
    }

    clear(card) {
        for (const ring of this._rings.values()) card.clear(ring);
    }

    // The layer that this tick writes.
    layer(key, plane) {
        return this.state.cell(key) * this.state.slots.get(key).planes + plane;
    }
}

export class Picture {
    constructor(record, player) {
        this.record = record;
        this.player = player;
        [this.width, this.height] = player.sizeOf(record);
        this.state = new State(player.arena, record.slots);
        this.images = new Images(player.card, this.state, this.width, this.height);
        this.stages = record.stages.map((stage) => new Launch(stage, this, player));
        this.shown = record.shown ? player.card.texture("bytes", this.width, this.height) : null;
        this.films = record.films === null ? null : player.kernel(record.films);
    }

    // One tick. Its picture is `shown` after it, if it has one.
    run(tick) {
        for (const stage of this.stages) {
            const [width, height] = [this.width, this.height].map((side) => Math.ceil(side / 2 ** stage.record.level));
            stage.begin(tick, width, height);
            stage.draw(tick, this.shown);
        }
        this.state.advance();
    }

    // Forgets everything.
    clear() {
        this.state.clear();
        this.images.clear(this.player.card);
    }
}

export class Numbers {
    constructor(record, player) {
        this.record = record;
        this.player = player;
        [this.width, this.height] = player.sizeOf(record);
        this.state = new State(player.arena, record.slots);
        this.kernel = player.kernel(record.kernel);
    }

    // One tick. Gives its outputs.
    run(tick) {
        this.player.lend(this.kernel, this);
        this.kernel.begin((name) => tick.uniform(name), (name) => tick.coord(name), this.state);
        const outputs = Array.from(this.kernel.elements(1, (name) => [tick.coord(name)]));
        this.state.advance();
        return outputs;
    }

    clear() {
        this.state.clear();
    }
}
