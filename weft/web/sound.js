// The sound of a page: the worklet that plays it, and its clock.

import { HeardRows } from "./hearing.js";
import { Recent } from "./mixer.js";

// How far back pictures and numbers can read, in samples.
const REACH = 1 << 18;

// What the worklet is told of a program.
function told(description, more) {
    const inputs = { ...description.inputs, ...more };
    const { settings, raw, channels, sounds, heard, views } = description;
    const needed = new Set(sounds.map(({ kernel }) => kernel));
    const modules = description.modules.map((module, number) => (needed.has(number) ? module : null));
    return { settings, inputs, raw, channels, sounds, heard, views, modules };
}

function optionsOf(description, media, first, inputs = {}) {
    return {
        numberOfInputs: 1, numberOfOutputs: 1, outputChannelCount: [description.channels],
        processorOptions: { description: told(description, inputs), sounds: media.sounds, first },
    };
}

// Seconds that numbers take to the worklet at most, if the page is not late.
const ON_THE_WAY = 0.05;

// Seconds in which a sound that begins again falls silent: one that is cut off would click.
const FADE = 0.01;

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
        Object.assign(this, { context, description, media });
        this._outside = time;
        this._inputs = inputs;
        this._exposed = description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at]));
        this._forget();
        this.node = null;
        this._streams = [];
        this.onfault = () => {};
    }

    // Whether it has begun. From then on it leads the clock.
    get leads() {
        return this.node !== null;
    }

    // Begins to play; gives whether that worked. A browser may want a gesture first.
    async begin() {
        await Promise.race([this.context.resume(), new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
        if (this.context.state === "running" && this.node === null) this._start();
        return this.leads;
    }

    _start() {
        const { context, description } = this;
        this._begin = this._outside();
        this._from = context.currentTime;
        const first = Math.round(this._begin * context.sampleRate);
        this.node = new AudioWorkletNode(context, "weft", optionsOf(description, this.media, first, this._inputs()));
        this.node.port.onmessage = ({ data }) => this._take(data);
        this._level = new GainNode(context);
        this.node.connect(this._level).connect(context.destination);
        for (const stream of this._streams) new MediaStreamAudioSourceNode(context, { mediaStream: stream }).connect(this.node);
    }

    // Begins again at the time of the performance, with nothing remembered.
    restart() {
        if (this.node === null) return;
        const { node, _level: level, context } = this, end = context.currentTime + FADE;
        level.gain.setValueAtTime(1, context.currentTime).linearRampToValueAtTime(0, end);
        setTimeout(() => {
            node.port.postMessage({ end: true });
            node.disconnect();
            level.disconnect();
        }, 2000 * FADE);
        node.port.onmessage = null;
        // It does not lead the clock until it has begun.
        this.node = null;
        this._forget();
        this._start();
    }

    _forget() {
        const { context, description } = this;
        this.recent = new Recent(this._exposed, context.sampleRate, REACH);
        this.heard = new Map(description.heard.map((record) => [record.name, new HeardRows(record, context.sampleRate)]));
    }

    // Takes what the worklet sends: samples of strands, and what analyses have heard.
    _take({ first, rows, heard, lost, stopped, time }) {
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
        return this._begin + Math.max(0, this.context.currentTime - this._from - this._latency);
    }

    // How many seconds from `time` on may be computed already when the worklet gets the next numbers.
    get ahead() {
        return this._latency + ON_THE_WAY;
    }

    get _latency() {
        return this.context.outputLatency || this.context.baseLatency || 0;
    }

    // Sends numbers and views, each with its name.
    set(numbers, views = []) {
        this.node?.port.postMessage({ numbers, views });
    }

    // Lets the sound hear a microphone.
    hear(stream) {
        this._streams.push(stream);
        if (this.node !== null) new MediaStreamAudioSourceNode(this.context, { mediaStream: stream }).connect(this.node);
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
