// The graphics card: WebGL 2 with textures of floats, the programs of shaders, and drawing over whole textures.

// What a page says where it cannot draw.
export class NoCard extends Error {}

export class Card {
    constructor(canvas, vertex) {
        const options = { alpha: true, antialias: false, depth: false, premultipliedAlpha: false, stencil: false,
                          powerPreference: "high-performance" };
        const gl = canvas.getContext("webgl2", options);
        if (gl === null) throw new NoCard("this browser has no WebGL 2, which draws the picture");
        if (gl.getExtension("EXT_color_buffer_float") === null) {
            throw new NoCard("this browser cannot draw to textures of floats (EXT_color_buffer_float)");
        }
        // What a page says where the card goes away while it draws.
        canvas.addEventListener("webglcontextlost", () => this.onlost?.());
        this.gl = gl;
        this.canvas = canvas;
        this._vertex = this._shader(gl.VERTEX_SHADER, vertex);
        this._programs = new Map();
        this._target = gl.createFramebuffer();
        this._source = gl.createFramebuffer();
        gl.bindVertexArray(gl.createVertexArray());
        gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
        this.layers = gl.getParameter(gl.MAX_ARRAY_TEXTURE_LAYERS);
        this.side = gl.getParameter(gl.MAX_TEXTURE_SIZE);
    }

    _shader(kind, text) {
        const gl = this.gl, shader = gl.createShader(kind);
        gl.shaderSource(shader, text);
        gl.compileShader(shader);
        return shader;
    }

    // Begins to compile the shaders of these texts, all at once.
    prepare(texts) {
        for (const text of texts) {
            if (this._programs.has(text)) continue;
            const gl = this.gl, program = gl.createProgram(), shader = this._shader(gl.FRAGMENT_SHADER, text);
            gl.attachShader(program, this._vertex);
            gl.attachShader(program, shader);
            gl.linkProgram(program);
            this._programs.set(text, { program, shader, ready: false, samplers: new Map() });
        }
    }

    // The program of a text. Waits until the driver has made it.
    program(text) {
        this.prepare([text]);
        const gl = this.gl, found = this._programs.get(text);
        if (found.ready) return found;
        if (!gl.getProgramParameter(found.program, gl.LINK_STATUS)) {
            const log = gl.getShaderInfoLog(found.shader) || gl.getProgramInfoLog(found.program) || "";
            throw new NoCard(`the graphics driver refuses a shader: ${log.trim().split("\n")[0]}`);
        }
        const block = gl.getUniformBlockIndex(found.program, "Frame");
        found.block = block === gl.INVALID_INDEX ? 0 : gl.getActiveUniformBlockParameter(
            found.program, block, gl.UNIFORM_BLOCK_DATA_SIZE);
        if (found.block) gl.uniformBlockBinding(found.program, block, 0);
        // Each sampler has a unit of its own.
        gl.useProgram(found.program);
        const count = gl.getProgramParameter(found.program, gl.ACTIVE_UNIFORMS);
        for (let at = 0; at < count; at++) {
            const { name, type } = gl.getActiveUniform(found.program, at);
            if (type !== gl.SAMPLER_2D && type !== gl.SAMPLER_2D_ARRAY) continue;
            gl.uniform1i(gl.getUniformLocation(found.program, name), found.samplers.size);
            found.samplers.set(name, found.samplers.size);
        }
        found.ready = true;
        return found;
    }

    // Textures.

    // A texture of this size: "float" (one number a pixel), "floats" (four) or "bytes" (four).
    texture(kind, width, height) {
        this._check(width, height);
        const gl = this.gl, texture = this._new(gl.TEXTURE_2D);
        const format = { float: gl.R32F, floats: gl.RGBA32F, pair: gl.RG32F, bytes: gl.RGBA8 }[kind];
        gl.texStorage2D(gl.TEXTURE_2D, 1, format, width, height);
        return { texture, kind, width, height };
    }

    // Layers of one number a pixel.
    array(width, height, layers) {
        this._check(width, height);
        if (layers > this.layers) {
            throw new NoCard(`the patch remembers ${layers} pictures, and this browser keeps ${this.layers}`);
        }
        const gl = this.gl, texture = this._new(gl.TEXTURE_2D_ARRAY);
        gl.texStorage3D(gl.TEXTURE_2D_ARRAY, 1, gl.R32F, width, height, layers);
        return { texture, kind: "array", width, height, layers };
    }

    _check(width, height) {
        if (Math.max(width, height) > this.side) {
            throw new NoCard(`a picture of ${width}×${height} is too large here: ${this.side} is the most`);
        }
    }

    _new(target) {
        const gl = this.gl, texture = gl.createTexture();
        gl.bindTexture(target, texture);
        gl.texParameteri(target, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
        gl.texParameteri(target, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
        gl.texParameteri(target, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
        gl.texParameteri(target, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
        return texture;
    }

    // Fills a texture with an array of its kind, or with what a film or a camera shows.
    fill(texture, from) {
        const gl = this.gl;
        gl.bindTexture(gl.TEXTURE_2D, texture.texture);
        const [format, type] = {
            float: [gl.RED, gl.FLOAT], pair: [gl.RG, gl.FLOAT], floats: [gl.RGBA, gl.FLOAT],
            bytes: [gl.RGBA, gl.UNSIGNED_BYTE],
        }[texture.kind];
        if (ArrayBuffer.isView(from)) {
            gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, texture.width, texture.height, format, type, from);
        } else {
            gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, format, type, from);
        }
    }

    // Fills the one texture of a holder, which is made again where it is too small.
    row(holder, values, width, height) {
        if (holder.texture === undefined || holder.texture.width !== width || holder.texture.height !== height) {
            if (holder.texture !== undefined) this.gl.deleteTexture(holder.texture.texture);
            holder.texture = this.texture("float", width, height);
        }
        this.fill(holder.texture, values);
        return holder.texture;
    }

    // Drawing.

    // Draws over targets of one size: each is a texture, a texture with the number of a layer, or null for what is not
    // kept.
    draw(program, targets, width, height) {
        const gl = this.gl;
        gl.bindFramebuffer(gl.FRAMEBUFFER, this._target);
        const points = [];
        for (let at = 0; at < 4; at++) {
            const [texture, layer] = targets[at] ?? [null];
            const point = gl.COLOR_ATTACHMENT0 + at;
            if (texture === null) gl.framebufferTexture2D(gl.FRAMEBUFFER, point, gl.TEXTURE_2D, null, 0);
            else this._attach(gl.FRAMEBUFFER, point, texture, layer);
            if (at < targets.length) points.push(texture === null ? gl.NONE : point);
        }
        gl.drawBuffers(points);
        gl.viewport(0, 0, width, height);
        gl.useProgram(program.program);
        gl.drawArrays(gl.TRIANGLES, 0, 3);
    }

    _attach(target, point, texture, layer) {
        const gl = this.gl;
        if (texture.kind === "array") gl.framebufferTextureLayer(target, point, texture.texture, 0, layer);
        else gl.framebufferTexture2D(target, point, gl.TEXTURE_2D, texture.texture, 0);
    }

    bind(unit, texture) {
        const gl = this.gl;
        gl.activeTexture(gl.TEXTURE0 + unit);
        gl.bindTexture(texture.kind === "array" ? gl.TEXTURE_2D_ARRAY : gl.TEXTURE_2D, texture.texture);
    }

    // Copies a texture into a layer of another one.
    copy(texture, array, layer) {
        const gl = this.gl;
        gl.bindFramebuffer(gl.READ_FRAMEBUFFER, this._source);
        this._attach(gl.READ_FRAMEBUFFER, gl.COLOR_ATTACHMENT0, texture, 0);
        gl.readBuffer(gl.COLOR_ATTACHMENT0);
        gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, this._target);
        for (let at = 1; at < 4; at++) {
            gl.framebufferTexture2D(gl.DRAW_FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + at, gl.TEXTURE_2D, null, 0);
        }
        this._attach(gl.DRAW_FRAMEBUFFER, gl.COLOR_ATTACHMENT0, array, layer);
        gl.drawBuffers([gl.COLOR_ATTACHMENT0]);
        const { width, height } = texture;
        gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
    }

    // Fills all layers of an array with zeros.
    clear(array) {
        const gl = this.gl;
        gl.bindFramebuffer(gl.FRAMEBUFFER, this._source);
        gl.drawBuffers([gl.COLOR_ATTACHMENT0]);
        for (let layer = 0; layer < array.layers; layer++) {
            this._attach(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, array, layer);
            gl.clearBufferfv(gl.COLOR, 0, [0, 0, 0, 0]);
        }
    }

    // Shows a picture on the canvas of the card. Rows of pictures are from top to bottom, and those of canvases are not.
    show({ texture, width, height }) {
        const gl = this.gl;
        if (this.canvas.width !== width) this.canvas.width = width;
        if (this.canvas.height !== height) this.canvas.height = height;
        gl.bindFramebuffer(gl.READ_FRAMEBUFFER, this._source);
        gl.framebufferTexture2D(gl.READ_FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
        gl.readBuffer(gl.COLOR_ATTACHMENT0);
        gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
        gl.blitFramebuffer(0, 0, width, height, 0, height, width, 0, gl.COLOR_BUFFER_BIT, gl.NEAREST);
    }

    // The values of a texture, or of a layer. Waits for the card.
    read(texture, layer = 0) {
        const gl = this.gl, { width, height, kind } = texture;
        gl.bindFramebuffer(gl.FRAMEBUFFER, this._source);
        this._attach(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, texture, layer);
        gl.readBuffer(gl.COLOR_ATTACHMENT0);
        const bytes = kind === "bytes";
        const values = new (bytes ? Uint8Array : Float32Array)(4 * width * height);
        gl.readPixels(0, 0, width, height, gl.RGBA, bytes ? gl.UNSIGNED_BYTE : gl.FLOAT, values);
        return values;
    }
}
