// `?check`: compares what the page draws and plays with values that the reference machine computed for the page, chosen
// by a seed. The title of the page becomes `check ok: N values`, or `check failed: …` with the first difference.

import { mediaOf } from "./media.js";
import { Offline, mixerOf, openFilms } from "./offline.js";

// The rates of sound that every browser plays.
const LOWEST_RATE = 8000;
const HIGHEST_RATE = 96000;

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
    const media = await mediaOf(description);
    const run = new Run(description, check, media, await mixerOf(description, media));
    const problems = [], films = await openFilms(description, run.offline.player, (text) => problems.push(text));
    await films.ready;
    if (problems.length) throw new Error(problems[0]);
    run.play();
    if (check.samples.length > 0) await run.compareWorklet();
    return run;
}

// One run through the first seconds, which compares what it comes by.
class Run {
    constructor(description, check, media, mixer) {
        Object.assign(this, { description, check, media, count: 0, wrong: [] });
        this.rate = description.settings.rate;
        this.offline = new Offline(description, media, mixer, {
            fps: check.fps, size: check.size, take: (first, rows) => this._compareSamples(first, rows),
        });
        this._samples = new Map();
        for (const [number, channel, value] of check.samples) {
            if (!this._samples.has(number)) this._samples.set(number, []);
            this._samples.get(number).push([channel, value]);
        }
    }

    play() {
        const { check } = this, last = check.frames.length ? check.frames[check.frames.length - 1] : -1;
        const frames = check.every ? Array.from({ length: last + 1 }, (_, at) => at) : check.frames;
        for (const number of frames) {
            this.offline.frame(number);
            this._comparePixels(number);
        }
        this.offline.hear(check.end);
    }

    _comparePixels(number) {
        const { check } = this, { player } = this.offline, time = number / check.fps;
        const wanted = check.pixels.filter(([frame]) => frame === number);
        for (const picture of player.shown) {
            const here = wanted.filter(([, target]) => target === picture.record.target);
            if (here.length === 0) continue;
            const found = player.card.read(picture.shown);
            for (const [, , x, y, values] of here) {
                const { target } = picture.record, window = target ? ` of "${target}"` : "";
                const at = 4 * (y * picture.width + x), place = `pixel ${x}, ${y}${window} at ${time.toFixed(3)} s`;
                values.forEach((value, channel) => {
                    this.say(place, "rgba"[channel], found[at + channel] / 255, value / 255, check.steps / 255 + 1e-9);
                });
            }
        }
    }

    _compareSamples(first, rows) {
        for (let at = 0; at < rows[0].length; at++) {
            for (const [channel, value] of this._samples.get(first + at) ?? []) {
                this.say(`sample ${first + at}`, `channel ${channel}`, Math.fround(rows[channel][at]), value, this.check.allowed);
            }
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
