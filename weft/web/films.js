// The films of a page. All frames of a film are decoded once, into textures, since a patch may read it at several times
// at once, backwards, or in jumps.

import { bytesOf } from "./kernels.js";

// The most bytes that the frames of a film take on the card. Of a longer one, some frames are left out.
const MOST_BYTES = 256e6;

// Seconds by which a time may have been rounded down.
const TOLERANCE = 1e-6;

class Film {
    constructor(record, card) {
        Object.assign(this, record);
        this.card = card;
        const most = Math.max(1, Math.floor(MOST_BYTES / (4 * this.width * this.height)));
        this.step = Math.ceil(this.frames / most);
        this.textures = new Array(Math.ceil(this.frames / this.step)).fill(null);
    }

    // Decodes all frames, the first one first.
    async decode(bytes) {
        const video = document.createElement("video");
        video.muted = true;
        video.preload = "auto";
        video.src = URL.createObjectURL(new Blob([bytes], { type: this.type }));
        await happened(video, "loadeddata");
        for (let at = 0; at < this.textures.length; at++) {
            const seeked = happened(video, "seeked");
            video.currentTime = ((at * this.step + 0.5) * this.seconds) / this.frames;
            await seeked;
            const texture = this.card.texture("bytes", this.width, this.height);
            this.card.fill(texture, video);
            this.textures[at] = texture;
        }
        URL.revokeObjectURL(video.src);
    }

    // The frame at a time: null for black, which is before the beginning of a film that does not loop.
    at(seconds, loops, before) {
        if (Number.isNaN(seconds)) return before;
        const length = this.seconds;
        let place = Math.min(Math.max(seconds, 0), length);
        if (loops) place = ((((seconds + TOLERANCE) % length) + length) % length) - TOLERANCE;
        else if (seconds < -TOLERANCE) return null;
        const number = Math.floor(((place + TOLERANCE) * this.frames) / length / this.step);
        return this.textures[Math.min(Math.max(number, 0), this.textures.length - 1)] ?? this.textures[0];
    }
}

function happened(video, event) {
    return new Promise((resolve, reject) => {
        video.addEventListener(event, resolve, { once: true });
        const failed = () => reject(new Error(video.error?.message || "this browser does not decode it"));
        video.addEventListener("error", failed, { once: true });
    });
}

export class Films {
    // Begins to decode the films of a description. They are `ready` when all frames are there, or reported by `say`.
    constructor(description, card, say) {
        this.card = card;
        this._black = card.texture("bytes", 1, 1);
        this._films = new Map();
        this._shown = new Map();
        this.ready = Promise.all(description.films.map((record) => {
            const film = new Film(record, card);
            for (const { name, loops } of record.names) this._films.set(name, { film, loops });
            return film.decode(bytesOf(record.data))
                .catch((problem) => say(`${record.title} cannot be shown: ${problem.message}.`));
        }));
    }

    // Chooses the frames of a subgraph before its tick: its kernel of films computes their times.
    choose(subgraph, tick, pictures) {
        const { films: kernel, state, record } = subgraph;
        kernel.begin((name) => tick.uniform(name), (name) => tick.coord(name), state, kernel.layout.sweep === "points");
        const times = kernel.elements(1, (name) => [tick.coord(name)]);
        record.filmed.forEach((name, at) => {
            const known = this._films.get(name);
            if (known === undefined) return;
            const frame = known.film.at(times[at], known.loops, this._shown.get(name) ?? null) ?? this._black;
            this._shown.set(name, frame);
            pictures.borrow(name, frame);
        });
    }
}
