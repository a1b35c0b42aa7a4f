// The sound of a page: the worklet that plays it, and its clock.

import { HeardRows } from "./hearing.js";
import { Recent } from "./mixer.js";

// How far back pictures and numbers can read, in samples.
const REACH = 1 << 18;

// What the worklet is told of a program.
function told(description) {
    const { settings, inputs, raw, channels, sounds, heard, views } = description;
    const needed = new Set(sounds.map(({ kernel }) => kernel));
    const modules = description.modules.map((module, number) => (needed.has(number) ? module : null));
    return { settings, inputs, raw, channels, sounds, heard, views, modules };
}

// `first` is the number of the first sample; null: the worklet waits until it is told.
function optionsOf(description, media, first) {
    return {
        numberOfInputs: 1, numberOfOutputs: 1, outputChannelCount: [description.channels],
        processorOptions: { description: told(description), sounds: media.sounds, first },
    };
}

// Seconds that numbers take to the worklet at most, if the page is not late.
const ON_THE_WAY = 0.05;

// Firefox on Linux is not asked for its latency. It keeps the sound's lock while it waits for the sound server, which
// may wait for a block of the sound, which waits for the lock: then the page stands still for ever. Most systems have
// about this one, in seconds.
const CANNOT_SAY = /Linux.*Gecko\//.test(navigator.userAgent);
const USUAL_LATENCY = 0.03;

// How long a browser is given to begin without a gesture, in milliseconds.
const PATIENCE = 300;

export class Sound {
    // Opens the sound of a description. `time` gives the time of the performance until it begins, and `inputs` the
    // numbers with which it does. Raises what the browser says where there is no sound.
    static async open(description, media, time, inputs) {
        const { rate } = description.settings;
        const context = new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
        await context.audioWorklet.addModule(window.weft.address("worklet.js"));
        return new Sound(context, description, media, time, inputs);
    }

    constructor(context, description, media, time, inputs) {
        Object.assign(this, { context, description });
        this._outside = time;
        this._inputs = inputs;
        this._exposed = description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at]));
        this._forget();
        this._since = null;
        this.onfault = () => {};
        this._node = new AudioWorkletNode(context, "weft", optionsOf(description, media, null));
        this._node.connect(context.destination);
        // Until the worklet has compiled what it plays; raises where it cannot.
        this.ready = new Promise((resolve, reject) => {
            this._node.port.onmessage = ({ data }) => (data.ready ? resolve() : this._take(data));
            this._node.onprocessorerror = () => reject(new Error("the browser cannot compute it"));
        });
        // Whoever begins hears of it.
        this.ready.catch(() => {});
    }

    // Whether it has begun. From then on it leads the clock.
    get leads() {
        return this._since !== null;
    }

    // Begins to play, as soon as the worklet is ready; gives whether that worked. A browser may want a gesture first.
    async begin() {
        const { context } = this;
        await Promise.race([context.resume(), new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
        if (context.state !== "running") return false;
        await this.ready;
        if (this._begin === undefined) this._start();
        return true;
    }

    _start() {
        this._begin = this._outside();
        const begin = Math.round(this._begin * this.context.sampleRate);
        this._node.port.postMessage({ begin, inputs: this._inputs() });
    }

    // Begins again at the time of the performance, with nothing remembered.
    restart() {
        if (this._begin === undefined) return;
        // It does not lead the clock until it has begun.
        this._since = null;
        this._forget();
        this._start();
    }

    _forget() {
        const { context, description } = this;
        this.recent = new Recent(this._exposed, context.sampleRate, REACH);
        this.heard = new Map(description.heard.map((record) => [record.name, new HeardRows(record, context.sampleRate)]));
    }

    // Takes what the worklet sends: since when it plays, samples of strands, and what analyses have heard.
    _take({ since, first, rows, heard, lost, stopped, time }) {
        if (since !== undefined) this._since = since;
        // What is on its way when it begins again is old.
        if (!this.leads) return;
        if (lost !== undefined) this.onfault({ lost, stopped, time });
        for (const [name, fresh] of heard ?? []) {
            for (const [number, row] of fresh) this.heard.get(name).add(number, row);
        }
        if (rows === undefined) return;
        this._exposed.forEach((name, at) => this.recent.write(name, first, rows[at]));
        this.recent.newest = first + rows[0].length - 1;
    }

    // The time that is heard now.
    get time() {
        return this._begin + Math.max(0, this.context.currentTime - this._since - this._latency);
    }

    // How many seconds from `time` on may be computed already when the worklet gets the next numbers.
    get ahead() {
        return this._latency + ON_THE_WAY;
    }

    get _latency() {
        return CANNOT_SAY ? USUAL_LATENCY : this.context.outputLatency || this.context.baseLatency || 0;
    }

    // Sends numbers and views, each with its name.
    set(numbers, views = []) {
        this._node.port.postMessage({ numbers, views });
    }

    // Lets the sound hear a microphone.
    hear(stream) {
        new MediaStreamAudioSourceNode(this.context, { mediaStream: stream }).connect(this._node);
    }
}

// The first samples of the sound as the worklet plays them, without a device: for each channel a row.
export async function renderedByWorklet(description, media, count) {
    const { rate } = description.settings, { channels } = description;
    const context = new OfflineAudioContext({ numberOfChannels: channels, length: count, sampleRate: rate });
    await context.audioWorklet.addModule(window.weft.address("worklet.js"));
    new AudioWorkletNode(context, "weft", optionsOf(description, media, 0)).connect(context.destination);
    const buffer = await context.startRendering();
    return Array.from({ length: channels }, (_, channel) => buffer.getChannelData(channel));
}
