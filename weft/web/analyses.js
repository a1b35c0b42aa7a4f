// What is heard in a sound: its loudness, spectrum, hits, pitch and tempo, a row of numbers for each hop. The constants
// and formulas are those of weft/media/analysis.py.

import { Fourier, fastLength } from "./fourier.js";

const LOWEST_BAND = 40, HIGHEST_BAND = 16000, LOW_END = 250, HIGH_START = 4000;
const FLOOR_DB = -60, SPECTRUM_RELEASE = 0.5, ONSET_RELEASE = 0.05, PEAK_RELEASE = 0.1;
const LOWEST_PITCH = 50, HIGHEST_PITCH = 2000, LOWEST_BPM = 60, HIGHEST_BPM = 180;
const NEVER = 100;

// A Hann window over a period.
function hann(length) {
    return Float64Array.from({ length }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / length));
}

// Numbers at equal ratios from one to another.
function geometric(from, to, count) {
    return Array.from({ length: count }, (_, k) => from * (to / from) ** (k / (count - 1)));
}

// The products of two rows of numbers.
function product(one, other) {
    const found = new Float64Array(one.length);
    for (let n = 0; n < found.length; n++) found[n] = one[n] * other[n];
    return found;
}

const sum = (values) => values.reduce((a, b) => a + b, 0);
const mean = (values) => sum(values) / values.length;
const clip = (value, low, high) => Math.min(Math.max(value, low), high);

// The place of the minimum of the parabola through three values, counted from the middle one.
function vertex(before, here, after) {
    const bend = before - 2 * here + after;
    return bend > 0 ? clip((0.5 * (before - after)) / bend, -0.5, 0.5) : 0;
}

// A value between those of a row, which continues with its ends.
function between(values, place) {
    if (place <= 0) return values[0];
    const low = Math.floor(place);
    return low + 1 >= values.length ? values[values.length - 1] : values[low] + (values[low + 1] - values[low]) * (place - low);
}

class Loudness {
    constructor(rate, hop, window) {
        this.weights = hann(window);
        this.total = sum(this.weights);
    }

    row(window) {
        let found = 0;
        for (let n = 0; n < window.length; n++) found += this.weights[n] * window[n] * window[n];
        return [Math.sqrt(found / this.total)];
    }
}

class Peak {
    constructor(rate, hop) {
        this.fall = Math.exp(-hop / rate / PEAK_RELEASE);
        this.value = 0;
    }

    row(window) {
        this.value = window.reduce((most, value) => Math.max(most, Math.abs(value)), this.value * this.fall);
        return [this.value];
    }
}

// Levels of all that is low, middle and high, and then of all bands.
class Spectrum {
    constructor(rate, hop, window, bands) {
        this.rate = rate;
        this.window = window;
        const top = Math.min(HIGHEST_BAND, rate / 2), edges = geometric(Math.min(LOWEST_BAND, top / 2), top, bands + 1);
        const low = Math.min(LOW_END, top), high = Math.min(HIGH_START, top);
        const parts = [[edges[0], low], [low, high], [high, top], ...edges.slice(1).map((end, k) => [edges[k], end])];
        this.hann = hann(window);
        this.fourier = new Fourier(window);
        this.weights = parts.map(([start, end]) => this._band(start, end));
        this.fall = hop / rate / SPECTRUM_RELEASE;
        this.levels = new Float64Array(parts.length);
    }

    _band(start, end) {
        const bins = Math.floor(this.window / 2) + 1, perBin = this.rate / this.window;
        if (start >= end) return { first: 0, weights: new Float64Array(0) };
        const middle = Math.sqrt(start * end) / perBin;
        const first = Math.min(start / perBin, middle - 1), last = Math.max(end / perBin, middle + 1);
        // A bin that the band covers in part counts with that part.
        const covered = Float64Array.from({ length: bins }, (_, k) => {
            return clip(Math.min(k + 0.5, last) - Math.max(k - 0.5, first), 0, 1);
        });
        // A wave without negative frequencies, whose power does not depend on its phase.
        const angle = (n) => (2 * Math.PI * middle * n) / this.window;
        const [re, im] = this.fourier.of(this.hann.map((w, n) => w * Math.cos(angle(n))),
                                         this.hann.map((w, n) => w * Math.sin(angle(n))));
        let power = 0;
        for (let k = 0; k < bins; k++) power += (covered[k] * (re[k] * re[k] + im[k] * im[k])) / 4;
        // Most bins are in none of its bands.
        const begin = Math.max(0, covered.findIndex((share) => share > 0));
        const after = covered.reduce((most, share, k) => (share > 0 ? k + 1 : most), begin);
        return { first: begin, weights: covered.slice(begin, after).map((share) => share / power) };
    }

    row(window) {
        const power = this.fourier.powers(product(window, this.hann));
        this.weights.forEach(({ first, weights }, band) => {
            let found = 0;
            for (let k = 0; k < weights.length; k++) found += weights[k] * power[first + k];
            const level = clip(1 - (10 * Math.log10(Math.max(found, 1e-30))) / FLOOR_DB, 0, 1);
            this.levels[band] = Math.max(level, this.levels[band] - this.fall);
        });
        return this.levels;
    }
}

// How much louder a sound becomes from one hop to the next, over bands.
class Novelty {
    constructor(rate, window) {
        this.hann = hann(window);
        this.fourier = new Fourier(window);
        const edges = geometric(30, Math.min(16000, rate / 2), 41), bins = Math.floor(window / 2) + 1;
        this.starts = [];
        let before = -1;
        for (let bin = 0; bin < bins; bin++) {
            const above = edges.filter((edge) => edge <= (bin * rate) / window).length;
            const band = clip(above - 1, 0, 39);
            if (band !== before) this.starts.push(bin);
            before = band;
        }
        this.scale = 2 / sum(this.hann);
        this.before = new Float64Array(this.starts.length + 2);
    }

    rise(window) {
        const power = this.fourier.powers(product(window, this.hann));
        const { starts, before } = this, count = starts.length;
        const levels = starts.map((start, band) => {
            let found = 0;
            for (let k = start; k < (starts[band + 1] ?? power.length); k++) found += power[k];
            return Math.log10(1 + 300 * Math.sqrt(found) * this.scale);
        });
        let total = 0;
        levels.forEach((level, band) => {
            total += Math.max(level - Math.max(before[band], before[band + 1], before[band + 2]), 0);
        });
        before.set(levels, 1);
        before[0] = levels[0];
        before[count + 1] = levels[count - 1];
        return total / count;
    }
}

// The moments at which something begins to sound.
class Onset {
    constructor(rate, hop, window) {
        this.novelty = new Novelty(rate, window);
        this.seconds = hop / rate;
        this.recent = new Float64Array(Math.max(3, Math.round(0.4 / this.seconds)));
        this.age = NEVER;
        this.strongest = this.before = this.value = 0;
        this.isRising = false;
    }

    row(window) {
        const flux = this.novelty.rise(window);
        this.age = Math.min(this.age + this.seconds, NEVER);
        const sorted = Float64Array.from(this.recent).sort();
        const threshold = 0.04 + 2 * sorted[Math.floor(sorted.length / 2)]
            + 0.2 * this.strongest * Math.exp(-this.age / 0.1);
        this.recent.copyWithin(0, 1);
        this.recent[this.recent.length - 1] = flux;
        if (flux > threshold && flux > this.before && this.age >= 0.05) {
            this.age = this.seconds;
            this.isRising = true;
            this.strongest = 0;
        }
        this.isRising &&= flux > this.strongest;
        this.strongest = Math.max(this.strongest, flux);
        this.before = flux;
        this.value = Math.max(this.value - this.seconds / ONSET_RELEASE, 0);
        if (this.isRising) this.value = Math.max(this.value, Math.min(1, flux / 0.5));
        return [this.value, this.age];
    }
}

// The frequency of a tone, and how certain it is: YIN.
class Pitch {
    constructor(rate, hop, window) {
        this.rate = rate;
        const longest = Math.min(Math.ceil(rate / LOWEST_PITCH) + 1, Math.floor(window / 2) - 1);
        this.shortest = Math.max(2, Math.floor(rate / HIGHEST_PITCH) - 1);
        this.lags = Math.max(longest, this.shortest + 3) - 1;
        this.summed = window - this.lags - 1;
        this.fourier = new Fourier(fastLength(window));
        this.frequency = 0;
    }

    row(window) {
        const row = [this.frequency, 0], power = window.reduce((a, b) => a + b * b, 0);
        if (power <= 1e-6 * window.length) return row;
        const middle = mean(window), [lag, aperiodicity] = this._period(window.map((value) => value - middle));
        row[1] = clip(1 - aperiodicity, 0, 1);
        if (row[1] >= 0.5) row[0] = this.frequency = this.rate / lag;
        return row;
    }

    _period(window) {
        const { fourier, summed: count, lags } = this, size = fourier.count;
        const square = new Float64Array(window.length + 1);
        window.forEach((value, n) => (square[n + 1] = square[n] + value * value));
        const filled = new Float64Array(size), head = new Float64Array(size);
        filled.set(window);
        head.set(window.subarray(0, count));
        const [re, im] = fourier.of(filled), [headRe, headIm] = fourier.of(head);
        const products = fourier.inverse(
            re.map((value, k) => value * headRe[k] + im[k] * headIm[k]),
            im.map((value, k) => value * headRe[k] - re[k] * headIm[k]),
        );
        const difference = new Float64Array(lags), normal = new Float64Array(lags);
        let total = 0;
        for (let at = 0; at < lags; at++) {
            const lag = at + 1;
            difference[at] = Math.max(square[count] + square[lag + count] - square[lag] - 2 * products[lag], 0);
            total += difference[at];
            normal[at] = (difference[at] * lag) / Math.max(total, 1e-30);
        }
        let best = normal.findIndex((value, at) => at >= this.shortest - 1 && value < 0.1);
        if (best < 0) {
            best = this.shortest - 1;
            for (let at = best; at < lags; at++) if (normal[at] < normal[best]) best = at;
        }
        while (best + 1 < lags && normal[best + 1] < normal[best]) best++;
        if (best <= 0 || best >= lags - 1) return [best + 1, normal[best]];
        return [best + 1 + vertex(difference[best - 1], difference[best], difference[best + 1]), normal[best]];
    }
}

// The beats of the last six seconds.
class Tempo {
    constructor(rate, hop, window) {
        this.novelty = new Novelty(rate, window);
        this.hops = rate / hop;
        this.rises = new Float64Array(Math.round(6 * this.hops));
        this.known = 0;
        this.fourier = new Fourier(fastLength(2 * this.rises.length));
        this.bpms = Array.from({ length: (HIGHEST_BPM - LOWEST_BPM) * 4 + 1 }, (_, k) => LOWEST_BPM + k / 4);
        this.preference = this.bpms.map((bpm) => Math.exp(-0.5 * (Math.log2(bpm / 120) / 0.9) ** 2));
        this.bpm = this.phase = 0;
    }

    row(window) {
        this.rises.copyWithin(0, 1);
        this.rises[this.rises.length - 1] = this.novelty.rise(window);
        this.known = Math.min(this.known + 1, this.rises.length);
        const confidence = this.known >= 2 * this.hops ? this._find() : 0;
        return [this.bpm, this.phase, confidence];
    }

    _find() {
        this.phase = (this.phase + this.bpm / 60 / this.hops) % 1;
        const { known, bpms } = this, recent = this.rises.subarray(this.rises.length - known), middle = mean(recent);
        const rises = recent.map((value) => Math.max(value - middle, 0));
        const correlation = this._correlation(rises);
        if (correlation === null) return 0;
        const atBeats = bpms.map((bpm) => [1, 2, 3, 4].map((k) => between(correlation, (k * this.hops * 60) / bpm)));
        const scores = bpms.map((bpm, at) => {
            const half = 2 * bpm <= HIGHEST_BPM ? between(correlation, (this.hops * 30) / bpm) : 0;
            return (mean(atBeats[at]) - 0.25 * Math.max(half, 0)) * this.preference[at];
        });
        const greatest = (places) => places.reduce((a, b) => (scores[b] > scores[a] ? b : a));
        let best = greatest([...bpms.keys()]);
        const near = [...bpms.keys()].filter((at) => Math.abs(bpms[at] - this.bpm) < 0.04 * this.bpm);
        if (near.length) {
            const kept = greatest(near);
            if (scores[best] < 1.1 * scores[kept]) best = kept;
        }
        const confidence = clip(atBeats[best][0], 0, 1);
        if (confidence < 0.2) return confidence;
        const found = this._exactly(bpms[best], correlation);
        const isNew = this.bpm === 0 || Math.abs(found / this.bpm - 1) > 0.04;
        this.bpm = found;
        const wrapped = (value) => ((value % 1) + 1) % 1;
        const error = wrapped(this._beat(rises) - this.phase + 0.5) - 0.5;
        this.phase = wrapped(this.phase + (isNew ? error : error * 0.08));
        return confidence;
    }

    // How rises are like themselves some hops before; null if they are as small as those of a steady tone.
    _correlation(rises) {
        const { fourier, known } = this, middle = mean(rises), filled = new Float64Array(fourier.count);
        filled.set(rises.map((value) => value - middle));
        const [re, im] = fourier.of(filled), power = re.map((value, k) => value * value + im[k] * im[k]);
        const plain = fourier.inverse(power, new Float64Array(power.length)).subarray(0, known);
        if (plain[0] <= 0.005 ** 2 * known) return null;
        const shared = plain.map((value, lag) => value / (known - lag));
        const smooth = shared.map((value, lag) => {
            return 0.25 * (lag === 0 ? shared[1] : shared[lag - 1]) + 0.5 * value + 0.25 * (shared[lag + 1] ?? 0);
        });
        smooth.fill(0, Math.floor((known * 3) / 4));
        return smooth.map((value) => value / smooth[0]);
    }

    _exactly(bpm, correlation) {
        const period = (this.hops * 60) / bpm;
        const count = Math.max(1, Math.trunc((Math.floor((this.known * 3) / 4) - 3) / period));
        const start = Math.round(count * period) - 1;
        let summit = start;
        for (let at = start; at < start + 3; at++) if (correlation[at] > correlation[summit]) summit = at;
        const lag = summit + vertex(-correlation[summit - 1], -correlation[summit], -correlation[summit + 1]);
        const found = (this.hops * 60 * count) / lag;
        return Math.abs(found / bpm - 1) < 0.02 ? found : bpm;
    }

    _beat(rises) {
        const period = (this.hops * 60) / this.bpm, newest = rises.length - 1, beats = Math.trunc(rises.length / period);
        const sums = Array.from({ length: Math.ceil(period / 0.5) }, (_, at) => {
            let found = 0;
            for (let beat = 0; beat < beats; beat++) {
                const back = at * 0.5 + period * beat;
                found += between(rises, newest - back) * Math.exp(-back / (this.hops * 3));
            }
            return found;
        });
        const best = sums.indexOf(Math.max(...sums)), count = sums.length;
        const around = [sums[(best + count - 1) % count], sums[best], sums[(best + 1) % count]];
        return (((best + vertex(...around.map((value) => -value))) * 0.5 + 1) / period) % 1;
    }
}

const KINDS = { rms: Loudness, peak: Peak, fft: Spectrum, onset: Onset, pitch: Pitch, tempo: Tempo };

// The samples of a window that ends with each hop, and the rows of an analysis.
export class Analyser {
    constructor({ analysis, bands, hop, hops }, rate) {
        this.hop = hop;
        this.window = new Float64Array(hop * hops);
        this._fresh = 0;
        this._kind = new KINDS[analysis](rate, hop, hop * hops, bands);
    }

    // Takes the next sample, and gives a row if a hop is complete.
    take(sample) {
        const { hop, window } = this;
        window[window.length - hop + this._fresh++] = Number.isFinite(sample) ? sample : 0;
        if (this._fresh < hop) return null;
        const row = Array.from(this._kind.row(window));
        window.copyWithin(0, hop);
        this._fresh = 0;
        return row;
    }
}
