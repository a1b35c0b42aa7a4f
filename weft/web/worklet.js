// The processor that plays the sound, in the thread of the audio device.

import { Mixer, Recent, soundModules } from "./mixer.js";

// The samples that pictures and numbers are sent at once.
const SENT = 512;

// Seconds between two looks at what is remembered.
const LOOK = 0.25;

// Seconds in which a sound that begins again falls silent: one that is cut off would click.
const FADE = 0.01;

// The samples that a browser asks for at once.
const QUANTUM = 128;

// The samples that are computed before the sound begins, by a mixer of their own: a browser compiles code when it runs.
const TRIED = 4096;

class Weft extends AudioWorkletProcessor {
    // It begins with the sample of number `first`, or without it when it is told to; then it says since when.
    constructor({ processorOptions: { description, sounds, first } }) {
        super();
        this._description = description;
        this._sounds = sounds;
        this._modules = soundModules(description);
        this._exposed = description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at]));
        this.mixer = this._fading = null;
        this._hasBegun = false;
        this._heard = null;
        this.port.onmessage = ({ data }) => {
            if (data.begin !== undefined) this._begin(data.begin, data.inputs);
            for (const [name, value] of data.numbers ?? []) this.mixer?.inputs.set(name, value);
            for (const [name, values] of data.views ?? []) this.mixer?.view(name, values);
        };
        if (first !== null) this._begin(first);
        else this._try();
    }

    _try() {
        const mixer = this._mixer(0);
        for (let at = 0; at < TRIED; at += QUANTUM) mixer.render(at, QUANTUM);
        this.port.postMessage({ ready: true });
    }

    _mixer(first, recent = new Recent(this._exposed, sampleRate, 2 * SENT), inputs = {}) {
        const description = { ...this._description, inputs: { ...this._description.inputs, ...inputs } };
        return new Mixer(description, { rate: sampleRate, modules: this._modules, sounds: this._sounds, recent, first });
    }

    // Begins, or begins again with nothing remembered; then what was played falls silent.
    _begin(first, inputs) {
        this._fading = this.mixer && { mixer: this.mixer, next: this._next, left: FADE * sampleRate };
        this._recent = new Recent(this._exposed, sampleRate, 2 * SENT);
        this.mixer = this._mixer(first, this._recent, inputs);
        this.mixer.microphone = (name, _, out) => this._microphone(name, out);
        this._first = this._next = first;
        this._look = LOOK * sampleRate;
        this._hasBegun = false;
    }

    process(inputs, outputs) {
        if (this.mixer === null) return true;
        if (!this._hasBegun) this.port.postMessage({ since: currentTime });
        this._hasBegun = true;
        const out = outputs[0], count = out[0].length;
        this._heard = inputs[0];
        const rows = this.mixer.render(this._next, count);
        this._fade(rows);
        out.forEach((channel, at) => channel.set(rows[at] ?? rows[0]));
        this._next += count;
        const heard = this.mixer.listeners.filter((listener) => listener.fresh.length);
        if (heard.length) {
            this.port.postMessage({ heard: heard.map(({ record, fresh }) => [record.name, fresh.splice(0)]) });
        }
        if (this._exposed.length && (this._next - this._first) % SENT < count) this._send();
        this._look -= count;
        if (this._look < 0) this._report();
        return true;
    }

    // Adds what was played before, as long as it falls silent.
    _fade(rows) {
        if (this._fading === null) return;
        const { mixer, next, left } = this._fading, count = rows[0].length;
        mixer.render(next, count).forEach((row, channel) => {
            for (let n = 0; n < count; n++) rows[channel][n] += row[n] * Math.max(0, (left - n) / (FADE * sampleRate));
        });
        this._fading = left > count ? { mixer, next: next + count, left: left - count } : null;
    }

    _report() {
        this._look = LOOK * sampleRate;
        const { lost, stopped } = this.mixer.faults;
        if (lost.length || stopped.length) this.port.postMessage({ lost, stopped, time: this._next / sampleRate });
    }

    _send() {
        const first = Math.max(this._first, this._next - SENT), count = this._next - first;
        const rows = this._exposed.map((name) => {
            const ring = this._recent.rings.get(name);
            return Float32Array.from({ length: count }, (_, at) => ring[(first + at) % ring.length]);
        });
        this.port.postMessage({ first, rows });
    }

    // What the channel of a microphone has heard in this quantum.
    _microphone(name, out) {
        const channel = this._heard?.[Number(name.slice(name.lastIndexOf("@") + 1))] ?? this._heard?.[0];
        if (channel !== undefined) out.set(channel);
        return out;
    }
}

registerProcessor("weft", Weft);
