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

function optionsOf(description, media, first) {
    return {
        numberOfInputs: 1, numberOfOutputs: 1, outputChannelCount: [description.channels],
        processorOptions: { description: told(description), sounds: media.sounds, first },
    };
}

export class Sound {
    // Opens the sound of a description, at a time in seconds. Raises what the browser says where it cannot.
    static async open(description, media, begin) {
        const { rate } = description.settings;
        const context = new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
        await context.audioWorklet.addModule(window.weft.address("worklet.js"));
        return new Sound(context, description, media, begin);
    }

    constructor(context, description, media, begin) {
        const rate = context.sampleRate;
        this.context = context;
        this.begin = begin;
        const exposed = description.sounds.flatMap(({ labels, sent }) => labels.filter((_, at) => sent[at]));
        this.recent = new Recent(exposed, context.sampleRate, REACH);
        const first = Math.round(begin * context.sampleRate);
        this.node = new AudioWorkletNode(context, "weft", optionsOf(description, media, first));
        this.heard = new Map(description.heard.map((record) => [record.name, new HeardRows(record, rate)]));
        this.node.port.onmessage = ({ data: { first: from, rows, heard } }) => {
            for (const [name, fresh] of heard ?? []) {
                for (const [number, row] of fresh) this.heard.get(name).add(number, row);
            }
            if (rows === undefined) return;
            exposed.forEach((name, at) => this.recent.write(name, from, rows[at]));
            this.recent.newest = from + rows[0].length - 1;
        };
        this.gain = new GainNode(context);
        this.node.connect(this.gain).connect(context.destination);
        this._from = context.currentTime;
    }

    // Whether it plays. A browser may want a gesture first.
    get plays() {
        return this.context.state === "running";
    }

    async resume() {
        await this.context.resume();
    }

    async suspend() {
        await this.context.suspend();
    }

    // The time that is heard now.
    get time() {
        const latency = this.context.outputLatency || this.context.baseLatency || 0;
        return this.begin + Math.max(0, this.context.currentTime - this._from - latency);
    }

    // Sends numbers and views, each with its name.
    set(numbers, views = []) {
        this.node.port.postMessage({ numbers, views });
    }

    // Lets the sound hear a microphone.
    hear(stream) {
        new MediaStreamAudioSourceNode(this.context, { mediaStream: stream }).connect(this.node);
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
