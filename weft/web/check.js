// `?check`: compares what the page draws and plays with values that the reference machine computed for the page, chosen
// by a seed. The title of the page becomes `check ok: N values`, or `check failed: …` with the first difference.

import { Card } from "./card.js";
import { mediaOf } from "./media.js";
import { Player, Tick } from "./player.js";

// The samples that are computed at once, as in a render, and how many pictures and numbers can read.
const BLOCK = 512;
const REACH = 1 << 20;

// The rates of sound that every browser plays.
const LOWEST_RATE = 8000;
const HIGHEST_RATE = 96000;

// By how much a channel of a pixel may differ, in steps of 1/255.
const PIXEL = 1;

export async function check(description) {
    try {
        const found = await compare(description);
        document.title = found.wrong.length === 0
            ? `check ok: ${found.count} values` : `check failed: ${found.wrong.length} of ${found.count}: ${found.wrong[0]}`;
    } catch (problem) {
        document.title = `check failed: ${problem.message}`;
        console.error(problem);
    }
    return document.title;
}

async function compare(description) {
    const { check } = description;
    if (check === null) throw new Error("the page was made without values to compare");
    const media = await mediaOf(description);
    const mixer = description.sounds.length ? await mixerOf(description, media) : null;
    const run = new Run(description, check, media, mixer);
    run.play();
    if (check.samples.length > 0) await run.compareWorklet();
    return run;
}

// The mixer of a sound, whose newest samples pictures and numbers can read.
async function mixerOf(description, media) {
    const { Mixer, Recent, soundModules } = await import(window.weft.address("mixer.js"));
    const { rate } = description.settings;
    const exposed = description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at]));
    const recent = new Recent(exposed, rate, REACH);
    return new Mixer(description, { rate, modules: soundModules(description), sounds: media.sounds, recent });
}

// One run through the first seconds, tick by tick and block by block as a render does it.
class Run {
    constructor(description, check, media, mixer) {
        Object.assign(this, { description, check, media, mixer, count: 0, wrong: [] });
        this.rate = description.settings.rate;
        this.player = null;
        if (description.subgraphs.length > 0) {
            const draws = description.subgraphs.some((record) => record.is === "picture");
            const card = draws ? new Card(document.createElement("canvas"), description.vertex) : null;
            this.player = new Player(description, card, {
                size: check.size, heard: (name) => mixer?.recent.getter(name) ?? (() => 0),
            });
            for (const [name, picture] of media.pictures) this.player.pictures.give(name, picture);
        }
        this.ahead = description.heard.length && !description.feeds ? description.heard[0].hop : 0;
        this.next = 0;
        this._samples = new Map();
        for (const [number, channel, value] of check.samples) {
            if (!this._samples.has(number)) this._samples.set(number, []);
            this._samples.get(number).push([channel, value]);
        }
    }

    play() {
        const { check } = this, feeds = this.player?.feeds !== undefined && this.description.feeds;
        const last = check.frames.length ? check.frames[check.frames.length - 1] : -1;
        const frames = check.every ? Array.from({ length: last + 1 }, (_, at) => at) : check.frames;
        for (const number of frames) {
            const time = number / check.fps;
            if (check.together && !(number === 0 && feeds)) {
                this.hear(Math.floor(time * this.rate + 1e-3) + 1 + this.ahead);
            }
            this.tick(number, time);
        }
        this.hear(check.end);
    }

    tick(number, time) {
        const { check, player } = this, { inputs } = this.description;
        const tick = new Tick({
            number, time, step: 1 / check.fps, width: player.width, height: player.height,
            inputs: (name) => inputs[name] ?? this.media.lengths.get(name) ?? STILL[name] ?? 0,
        });
        for (const { record, heard, fresh } of this.mixer?.listeners ?? []) {
            if (fresh.length || number === 0) player.pictures.give(record.name, heard.picture());
            fresh.length = 0;
        }
        player.run(tick);
        if (this.description.feeds) player.feeds(tick).forEach((value, name) => this.mixer.inputs.set(name, value));
        for (const [name, values] of player.views(tick)) this.mixer.view(name, values);
        const wanted = check.pixels.filter(([frame]) => frame === number);
        for (const picture of player.shown) {
            const here = wanted.filter(([, target]) => target === picture.record.target);
            if (here.length === 0) continue;
            const found = player.card.read(picture.shown);
            for (const [, , x, y, values] of here) {
                const { target } = picture.record, window = target ? ` of "${target}"` : "";
                const at = 4 * (y * picture.width + x), place = `pixel ${x}, ${y}${window} at ${time.toFixed(3)} s`;
                values.forEach((value, channel) => {
                    this.say(place, "rgba"[channel], found[at + channel] / 255, value / 255, PIXEL / 255 + 1e-9);
                });
            }
        }
    }

    // Computes the sound up to a sample.
    hear(end) {
        if (this.mixer === null) return;
        while (this.next < end) {
            const count = Math.min(BLOCK, end - this.next), rows = this.mixer.render(this.next, count);
            for (let at = 0; at < count; at++) {
                for (const [channel, value] of this._samples.get(this.next + at) ?? []) {
                    this.say(`sample ${this.next + at}`, `channel ${channel}`, Math.fround(rows[channel][at]), value, this.check.allowed);
                }
            }
            this.next += count;
        }
    }

    // The worklet that plays computes the same as the mixer of this run, as long as nothing is fed to it.
    async compareWorklet() {
        if (this.description.feeds || this.rate < LOWEST_RATE || this.rate > HIGHEST_RATE) return;
        const { renderedByWorklet } = await import(window.weft.address("sound.js"));
        const count = Math.min(this.check.end, 4096);
        const played = await renderedByWorklet(this.description, this.media, count);
        for (const [number, wanted] of this._samples) {
            if (number >= count) continue;
            for (const [channel, value] of wanted) {
                this.say(`sample ${number} of the worklet`, `channel ${channel}`, played[channel][number], value, this.check.allowed);
            }
        }
    }

    say(place, part, found, wanted, allowed) {
        this.count++;
        if (!(Math.abs(found - wanted) <= allowed)) {
            this.wrong.push(`${place}, ${part}: ${found.toPrecision(7)} instead of ${wanted.toPrecision(7)}`);
        }
    }
}

// Inputs by hand that nobody touches.
const STILL = { "mouse@x": 0.5, "mouse@y": 0.5 };
