// The MIDI devices of the browser, and the positions of their controllers.

// Listens to all devices, and to those that are connected later: `take` gets the name of a device, the bytes of a
// message, and its moment in seconds, `end` the name of one that is gone. The browser asks the visitor. Raises what it says where there is no MIDI.
export async function listen(take, end = () => {}) {
    if (navigator.requestMIDIAccess === undefined) throw new Error("this browser has no MIDI");
    const access = await navigator.requestMIDIAccess();
    const follow = (port) => {
        // Not `onmidimessage`: several may listen to one port.
        if (port.type === "input") port.addEventListener("midimessage", ({ data, timeStamp }) => take(port.name ?? "", data, timeStamp / 1000));
        if (port.type === "input") port.open();
    };
    const known = new Set(access.inputs.keys());
    access.inputs.forEach(follow);
    access.addEventListener("statechange", ({ port }) => {
        if (port.state !== "connected") end(port.name ?? "");
        else if (!known.has(port.id)) {
            known.add(port.id);
            follow(port);
        }
    });
}

// The positions of controllers. One below 32 is the coarse half of a pair, whose fine half has a number that is 32 higher
// and comes at once.
export class Controllers {
    // `moment` gives the seconds by which messages are apart.
    constructor(moment) {
        this._moment = moment;
        this._coarse = new Map();
        this._last = new Map();
    }

    // What a message moves: numbers of controllers with their positions, 0…1. The last one is what was turned.
    moved(device, channel, number, value) {
        const here = `${device} ${channel}`, last = this._last.get(here), now = this._moment();
        this._last.set(here, { number, value, now });
        const coarse = number - 32, pair = (n) => `${here} ${n}`, found = [[number, value / 127]];
        if (coarse >= 0 && coarse < 32) {
            if (last?.number === coarse && now - last.now <= 0.01) this._coarse.set(pair(coarse), last.value);
            const upper = this._coarse.get(pair(coarse));
            if (upper !== undefined) found.push([coarse, ((upper << 7) | value) / 16383]);
        } else if (this._coarse.has(pair(number))) {
            // A new coarse half sets the fine one to 0.
            this._coarse.set(pair(number), value);
            found.push([number, (value << 7) / 16383]);
        }
        return found;
    }
}
