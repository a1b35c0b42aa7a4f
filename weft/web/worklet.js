// The processor that plays the sound, in the thread of the audio device.

import { Mixer, Recent, soundModules } from "./mixer.js";

// The samples that pictures and numbers are sent at once.
const SENT = 512;

// Seconds between two looks at what is remembered.
const LOOK = 0.25;

class Weft extends AudioWorkletProcessor {
    constructor({ processorOptions: { description, sounds, first } }) {
        super();
        this._exposed = description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at]));
        this._recent = new Recent(this._exposed, sampleRate, 2 * SENT);
        this.mixer = new Mixer(description, { rate: sampleRate, modules: soundModules(description), sounds,
                                              recent: this._recent, first });
        this._first = this._next = first;
        this._heard = null;
        this.mixer.microphone = (name, _, out) => this._microphone(name, out);
        this._ended = false;
        this._look = LOOK * sampleRate;
        this.port.onmessage = ({ data }) => {
            if (data.end) this._ended = true;
            if (data.end) return;
            for (const [name, value] of data.numbers) this.mixer.inputs.set(name, value);
            for (const [name, values] of data.views) this.mixer.view(name, values);
        };
    }

    process(inputs, outputs) {
        if (this._ended) return false;
        const out = outputs[0], count = out[0].length;
        this._heard = inputs[0];
        const rows = this.mixer.render(this._next, count);
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
