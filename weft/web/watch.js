// What a page reports while it plays: memory that is not finite, and loops that stop at their limit of steps.

// Seconds between two looks.
const EVERY = 0.25;

// A look at layers of a texture, which the card takes in its own time.
class Survey {
    // Uses the shader of `survey`, which draws `side` × `side` pixels.
    constructor(card, { shader, side }) {
        this.card = card;
        this.side = side;
        this._shader = shader;
        this._texture = card.texture("bytes", side, side);
        this._buffer = card.gl.createBuffer();
        this._fence = null;
        card.gl.bindBuffer(card.gl.PIXEL_PACK_BUFFER, this._buffer);
        card.gl.bufferData(card.gl.PIXEL_PACK_BUFFER, 4 * side * side, card.gl.STREAM_READ);
        card.gl.bindBuffer(card.gl.PIXEL_PACK_BUFFER, null);
    }

    // Has the card look for values that are not finite, or greater than `most`.
    begin(texture, first, count, most) {
        const { card, side } = this, { gl } = card, program = card.program(this._shader);
        card.bind(program.samplers.get("images"), texture);
        gl.useProgram(program.program);
        gl.uniform1i(gl.getUniformLocation(program.program, "first"), first);
        gl.uniform1i(gl.getUniformLocation(program.program, "count"), count);
        gl.uniform1f(gl.getUniformLocation(program.program, "most"), most);
        card.draw(program, [[this._texture]], side, side);
        gl.bindBuffer(gl.PIXEL_PACK_BUFFER, this._buffer);
        gl.readPixels(0, 0, side, side, gl.RGBA, gl.UNSIGNED_BYTE, 0);
        gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
        this._fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    }

    // Whether it has found something; null as long as that is not known.
    get found() {
        const { gl } = this.card;
        if (this._fence === null) return false;
        if (gl.clientWaitSync(this._fence, 0, 0) === gl.TIMEOUT_EXPIRED) return null;
        gl.deleteSync(this._fence);
        this._fence = null;
        const pixels = new Uint8Array(4 * this.side * this.side);
        gl.bindBuffer(gl.PIXEL_PACK_BUFFER, this._buffer);
        gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, 0, pixels);
        gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
        return pixels.some((level) => level > 0);
    }
}

// Looks at a player now and then: at all that is numbers, and at one image or one loop of the card in turn.
export class Watch {
    // `report` gets a sentence, `clears` is how a visitor begins again.
    constructor(description, player, report, clears) {
        Object.assign(this, { description, player, report, clears });
        this._sights = player === null ? [] : [...sightsOf(player)];
        this._survey = this._sights.length ? new Survey(player.card, description.survey) : null;
        this._at = -1;
        this._waits = false;
        this._due = 0;
        this.forget();
    }

    // Forgets what was reported, so that it is reported again.
    forget() {
        this._known = new Set();
    }

    // Looks after a tick, at a time of the performance.
    look(time) {
        if (this.player === null || (this._due > time && this._due < time + 2 * EVERY)) return;
        this._due = time + EVERY;
        for (const subgraph of [...this.player.subgraphs, ...this.player.feeding]) {
            subgraph.state.lost.forEach((key) => this.lost(key, time));
            if (subgraph.kernel?.stopped) this.stopped(subgraph.record.name);
        }
        if (this._survey !== null) this._lookAtCard(time);
    }

    _lookAtCard(time) {
        const sight = this._sights[this._at];
        if (this._waits) {
            const found = this._survey.found;
            if (found === null) return;
            this._waits = false;
            if (found) sight.found(this, time);
        } else if (sight?.isReady) {
            this._survey.begin(...sight.look());
            this._waits = true;
            return;
        }
        this._at = (this._at + 1) % this._sights.length;
        this._sights[this._at].prepare();
    }

    // Reports that a slot is not finite.
    lost(key, time) {
        const { name, place } = this.description.remembered[key] ?? { name: key.split("/")[1], place: "" };
        if (this._known.has(name)) return;
        this._known.add(name);
        const words = `${name} is not finite since ${time.toFixed(1)} s: what it remembers grows without end, or is no number`;
        this.report(`${words}${place && ` (${place})`}.${this.clears && ` ${this.clears}`}`);
    }

    // Reports that a loop of a subgraph stops at its limit.
    stopped(name) {
        if (this._known.has(`${name} stops`)) return;
        this._known.add(`${name} stops`);
        const place = this.description.loops[name];
        this.report(`A loop stops at its limit of steps, and leaves out the rest${place ? ` (${place})` : ""}.`);
    }
}

// What there is to look at on the card.
function* sightsOf(player) {
    for (const picture of player.subgraphs) {
        if (picture.images === undefined) continue;
        for (const slot of picture.state.slots.values()) if (slot.image && slot.depth > 0) yield new ImageSight(picture, slot);
        for (const pass of picture.stages.flatMap((stage) => stage.passes)) if (pass.record.stops) yield new LoopSight(picture, pass);
    }
}

// What an image remembers since the last tick.
class ImageSight {
    constructor(picture, slot) {
        Object.assign(this, { picture, slot, isReady: true });
    }

    prepare() {}

    look() {
        const { images, state } = this.picture, { key, planes } = this.slot;
        return [images.ring(key), state.cell(key, 1) * planes, planes, 3e38];
    }

    found(watch, time) {
        watch.lost(this.slot.key, time);
    }
}

// Where loops of a pass have met their limit, in one tick.
class LoopSight {
    constructor(picture, pass) {
        Object.assign(this, { picture, pass });
    }

    get isReady() {
        return this.pass.limit !== null && !this.pass.notesLimit;
    }

    prepare() {
        this.pass.notesLimit = true;
    }

    look() {
        return [this.pass.limit, 0, 1, 0];
    }

    found(watch) {
        watch.stopped(this.picture.record.name);
    }
}
