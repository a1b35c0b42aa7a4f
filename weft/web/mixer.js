// The mixer: computes the sound block by block, in the worklet that plays it or in a check, and the same in both.

import { Listener } from "./hearing.js";
import { Arena, Kernel, State, VIEW, bytesOf } from "./kernels.js";

// The shortest time in which a control goes from one value to the next, in seconds: one that jumps would click.
const LED = 0.01;

// A control on its way along a straight line.
class Ramp {
    constructor(value) {
        this.now = this.target = value;
        this.left = 0;
    }

    // Writes the next values.
    advance(out) {
        const from = this.now;
        for (let at = 0; at < out.length; at++) {
            out[at] = at + 1 >= this.left ? this.target : from + (this.target - from) * ((at + 1) / this.left);
        }
        this.left = Math.max(0, this.left - out.length);
        this.now = out[out.length - 1];
        return out;
    }
}

// The newest samples of strands that pictures and numbers read, by the names of the strands.
export class Recent {
    constructor(names, rate, length) {
        this.rate = rate;
        this.length = length;
        this.newest = -1;
        this.rings = new Map(names.map((name) => [name, new Float32Array(length)]));
    }

    write(name, first, values) {
        const ring = this.rings.get(name), start = first % this.length, fits = Math.min(values.length, this.length - start);
        ring.set(values.subarray(0, fits), start);
        ring.set(values.subarray(fits), 0);
    }

    // A function that gives a strand at a time: 0 before the start and long ago, the newest in the future.
    getter(name) {
        const ring = this.rings.get(name);
        if (ring === undefined) return () => 0;
        return (seconds) => {
            const place = seconds * this.rate + 1e-3;
            const number = Number.isNaN(place) ? -1 : Math.floor(Math.min(Math.max(place, -1), Math.max(this.newest, -1)));
            return number >= 0 && number > this.newest - this.length ? ring[number % this.length] : 0;
        };
    }
}

// One subgraph of the sound: a kernel and what it remembers, for each channel if channels differ.
class Voice {
    constructor(record, mixer, differs) {
        this.record = record;
        const count = differs ? mixer.channels : 1;
        this.parts = Array.from({ length: count }, () => ({
            kernel: mixer.kernel(record.kernel), state: new State(mixer.arena, record.slots),
        }));
        for (const { kernel } of this.parts) mixer.lend(kernel);
    }

    // The outputs [channels][outputs] of the next samples.
    render(first, count, mixer, controls) {
        const outputs = this.record.labels.length, uniform = (name) => mixer.uniform(name, first);
        return this.parts.map(({ kernel, state }, channel) => {
            kernel.begin(uniform, (name) => (name === "channel" ? channel : first / mixer.rate), state);
            kernel.at(first, mixer.rate);
            const found = kernel.elements(count, (name) => {
                const rows = controls.get(name);
                return rows === undefined ? 0 : rows[Math.min(channel, rows.length - 1)];
            });
            state.ticks += count;
            return Array.from({ length: outputs }, (_, at) => found.slice(at * count, (at + 1) * count));
        });
    }
}

export class Mixer {
    // `modules` are compiled, by the numbers of `description.modules`; `sounds` gives the stored sounds by name, each
    // with its samples [samples, 2].
    constructor(description, { rate, modules, sounds = new Map(), recent, first = 0 }) {
        this.description = description;
        this.rate = rate;
        this.channels = description.channels;
        this.arena = new Arena();
        this.recent = recent;
        this.inputs = new Map(Object.entries(description.inputs));
        this._modules = modules;
        this._sounds = sounds;
        this._lent = new Map();
        this._changing = new Map();
        this.listeners = description.heard.map((record) => new Listener(record, rate, first));
        this._raw = new Set(description.raw);
        this._ramps = new Map();
        this.microphone = null;
        // A subgraph that reads one whose channels differ has channels that differ.
        const apart = new Set();
        this.voices = description.sounds.map((record) => {
            const differs = record.apart || record.controls.some((name) => apart.has(name));
            if (differs) record.labels.forEach((label, at) => record.sent[at] && apart.add(label));
            return new Voice(record, this, differs);
        });
        const sent = new Set(description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at])));
        this._controls = [...new Set(description.sounds.flatMap(({ controls }) => controls))]
            .filter((name) => !sent.has(name));
    }

    kernel(number) {
        return new Kernel(this.arena, this.description.modules[number], this._modules.get(number), () => () => 0);
    }

    // Lends a kernel the sounds that it reads.
    lend(kernel) {
        for (const { name } of kernel.layout.sampled) {
            const listener = this.listeners.find((each) => each.record.name === name);
            if (listener !== undefined) {
                this._show(name, listener.heard.picture(listener.later));
                const { address, width, height } = this._changing.get(name);
                kernel.lend(name, address, width, height);
                continue;
            }
            if (this.description.views.includes(name)) {
                const [height, width] = VIEW;
                if (!this._changing.has(name)) this._show(name, { values: new Float32Array(4 * width * height), width, height });
                kernel.lend(name, this._changing.get(name).address, width, height);
                continue;
            }
            const samples = this._sounds.get(name);
            if (samples === undefined) continue;
            if (!this._lent.has(name)) {
                const address = this.arena.take(4 * samples.length);
                this.arena.singles(address, samples.length).set(samples);
                this._lent.set(name, address);
            }
            kernel.lend(name, this._lent.get(name), samples.length / 2, 1);
        }
    }

    // Changes a picture that kernels read.
    _show(name, { values, width, height }) {
        if (!this._changing.has(name)) {
            this._changing.set(name, { address: this.arena.take(4 * values.length), width, height });
        }
        this.arena.singles(this._changing.get(name).address, values.length).set(values);
    }

    // Shows the sound a strand of a picture, whose values [height, width] are those of a view.
    view(name, values) {
        if (!this._changing.has(name)) return;
        const room = this.arena.singles(this._changing.get(name).address, 4 * values.length);
        values.forEach((value, at) => (room[4 * at] = value));
    }

    // What is not as it should be: the keys of slots that are not finite, and the names of subgraphs with a loop that
    // has met its limit since the last question.
    get faults() {
        const parts = this.voices.flatMap(({ parts, record }) => parts.map((part) => ({ ...part, name: record.name })));
        return {
            lost: parts.flatMap(({ state }) => state.lost),
            stopped: parts.filter(({ kernel }) => kernel.stopped).map(({ name }) => name),
        };
    }

    // A number that is the same in a block whose first sample has this number.
    uniform(name, first) {
        const { settings } = this.description;
        switch (name) {
            case "width": return settings.width;
            case "height": return settings.height;
            case "absframe": return 0;
            case "dt": return 1 / this.rate;
            case "bpm": return this.inputs.get(first / this.rate < this.inputs.get("beats_start") ? "beats_bpm_before" : "beats_bpm");
        }
        const known = this.inputs.get(name);
        if (known !== undefined) return known;
        return this._sounds.has(name) ? (this._sounds.get(name).over ?? this._sounds.get(name).length / 2) : 0;
    }

    // Computes the next samples from number `first` on, where `left` remain of the block: for each channel a row, −1…1.
    render(first, count, left = count) {
        const controls = new Map(this._controls.map((name) => [name, [this._control(name, first, count, left)]]));
        const total = Array.from({ length: this.channels }, () => new Float64Array(count));
        for (const voice of this.voices) {
            const { labels, sent, channelled } = voice.record, values = voice.render(first, count, this, controls);
            labels.forEach((label, at) => {
                const rows = values.map((outputs) => outputs[at]);
                if (sent[at]) {
                    controls.set(label, rows);
                    if (this.recent?.rings.has(label)) this.recent.write(label, first, rows[0]);
                    return;
                }
                total.forEach((sum, channel) => {
                    const only = channelled[at];
                    if (only !== null && only % this.channels !== channel) return;
                    const row = rows[Math.min(only ?? channel, rows.length - 1)];
                    // What is not a number in one output must not silence the others.
                    for (let n = 0; n < count; n++) if (Number.isFinite(row[n])) sum[n] += row[n];
                });
            });
        }
        if (this.recent) this.recent.newest = first + count - 1;
        for (const listener of this.listeners) {
            const rows = controls.get(listener.record.strand);
            if (rows !== undefined) listener.hear(first, Float32Array.from(rows[0]));
            const { name } = listener.record;
            if (listener.fresh.length && this._changing.has(name)) this._show(name, listener.heard.picture(listener.later));
        }
        for (const sum of total) {
            for (let n = 0; n < count; n++) sum[n] = Math.min(Math.max(sum[n], -1), 1);
        }
        return total;
    }

    // The next values of a control: one number if they are all the same.
    _control(name, first, count, left) {
        if (name.startsWith("mic:")) return this.microphone?.(name, first, new Float64Array(count)) ?? 0;
        const target = this.inputs.get(name) ?? 0;
        let ramp = this._ramps.get(name);
        if (ramp === undefined || this._raw.has(name) || !Number.isFinite(target - ramp.now)) {
            ramp = new Ramp(target);
            this._ramps.set(name, ramp);
        } else if (ramp.target !== target) {
            ramp.target = target;
            ramp.left = Math.max(left, Math.ceil(LED * this.rate));
        }
        return ramp.left === 0 ? ramp.now : ramp.advance(new Float64Array(count));
    }
}

// The modules that sounds need, compiled, by their numbers.
export function soundModules(description) {
    const numbers = new Set(description.sounds.map(({ kernel }) => kernel));
    return new Map([...numbers].map((number) => {
        return [number, new WebAssembly.Module(bytesOf(description.modules[number].code))];
    }));
}
