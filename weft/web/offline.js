// A performance without a clock: the frames and the sound of the first seconds in order, as a render computes them.

import { Card } from "./card.js";
import { Player, Tick } from "./player.js";

// The samples that are computed at once, as in a render, and how many pictures and numbers can read.
const BLOCK = 512;
const REACH = 1 << 20;

// Inputs by hand that are not touched.
const STILL = { "mouse@x": 0.5, "mouse@y": 0.5 };

// The mixer of a sound, whose newest samples pictures and numbers can read; null where there is no sound.
export async function mixerOf(description, media) {
    if (description.sounds.length === 0) return null;
    const { Mixer, Recent, soundModules } = await import(window.weft.address("mixer.js"));
    const { rate } = description.settings;
    const exposed = description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at]));
    const recent = new Recent(exposed, rate, REACH);
    return new Mixer(description, { rate, modules: soundModules(description), sounds: media.sounds, recent });
}

// Lets a player show the films of a description, which `say` reports on; gives a promise that lasts until all frames are
// there.
export async function openFilms(description, player, say) {
    if (description.films.length === 0 || !player?.card) return { ready: Promise.resolve() };
    const { Films } = await import(window.weft.address("films.js"));
    player.pictures.films = new Films(description, player.card, say);
    // Not the promise itself, which whoever waits for this function would wait for.
    return { ready: player.pictures.films.ready };
}

export class Offline {
    // `size` is that of the pictures, instead of the patch's; `canvas` shows them; `take` gets the samples that are
    // computed, as the number of the first one and a row for each channel.
    constructor(description, media, mixer, { fps, size = null, canvas = document.createElement("canvas"), take = () => {} }) {
        Object.assign(this, { description, media, mixer, fps, take });
        this.rate = description.settings.rate;
        this.player = null;
        if (description.subgraphs.length > 0) {
            const draws = description.subgraphs.some((record) => record.is === "picture");
            const card = draws ? new Card(canvas, description.vertex) : null;
            this.player = new Player(description, card, { size, heard: (name) => mixer?.recent.getter(name) ?? (() => 0) });
            for (const [name, picture] of media.pictures) this.player.pictures.give(name, picture);
        }
        this._ahead = description.heard.length && !description.feeds ? description.heard[0].hop : 0;
        this._next = 0;
    }

    // Draws the frame of a number, whose time may be within it. If sound and pictures read each other, it hears first
    // what the frame reads.
    frame(number, time = number / this.fps) {
        if (this.description.together && !(number === 0 && this.description.feeds)) {
            this.hear(Math.floor(time * this.rate + 1e-3) + 1 + this._ahead);
        }
        const { player, mixer } = this, { inputs } = this.description;
        const tick = new Tick({
            number, time, step: 1 / this.fps, width: player.width, height: player.height,
            inputs: (name) => inputs[name] ?? this.media.lengths.get(name) ?? STILL[name] ?? 0,
        });
        for (const { record, heard, fresh } of mixer?.listeners ?? []) {
            if (fresh.length || number === 0) player.pictures.give(record.name, heard.picture());
            fresh.length = 0;
        }
        player.run(tick);
        if (this.description.feeds) player.feeds(tick).forEach((value, name) => mixer.inputs.set(name, value));
        for (const [name, values] of player.views(tick)) mixer.view(name, values);
    }

    // Computes the sound up to a sample.
    hear(end) {
        if (this.mixer === null) return;
        while (this._next < end) {
            const count = Math.min(BLOCK, end - this._next);
            this.take(this._next, this.mixer.render(this._next, count));
            this._next += count;
        }
    }
}
