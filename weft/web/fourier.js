// Discrete Fourier transforms of real numbers, of any length.

// The power of two that is at least that length.
export function fastLength(least) {
    return 2 ** Math.ceil(Math.log2(Math.max(1, least)));
}

// Transforms of complex numbers whose count is a power of two, in place.
class PowerOfTwo {
    constructor(count) {
        this.count = count;
        this.cosines = Float64Array.from({ length: count / 2 }, (_, k) => Math.cos((2 * Math.PI * k) / count));
        this.sines = Float64Array.from({ length: count / 2 }, (_, k) => Math.sin((2 * Math.PI * k) / count));
        const bits = Math.log2(count);
        this.order = Uint32Array.from({ length: count }, (_, at) => {
            let found = 0;
            for (let bit = 0; bit < bits; bit++) found |= ((at >> bit) & 1) << (bits - 1 - bit);
            return found;
        });
    }

    run(real, imaginary) {
        const { count, order, cosines, sines } = this;
        for (let at = 0; at < count; at++) {
            const other = order[at];
            if (other <= at) continue;
            const x = real[at], y = imaginary[at];
            real[at] = real[other];
            imaginary[at] = imaginary[other];
            real[other] = x;
            imaginary[other] = y;
        }
        // Pairs first, which are not turned.
        for (let at = 0; at + 1 < count; at += 2) {
            const x = real[at + 1], y = imaginary[at + 1];
            real[at + 1] = real[at] - x;
            imaginary[at + 1] = imaginary[at] - y;
            real[at] += x;
            imaginary[at] += y;
        }
        for (let half = 2; half < count; half *= 2) {
            const step = count / (2 * half);
            for (let start = 0; start < count; start += 2 * half) {
                for (let k = 0; k < half; k++) {
                    const upper = start + k, lower = upper + half, c = cosines[k * step], s = -sines[k * step];
                    const a = real[lower] * c - imaginary[lower] * s, b = real[lower] * s + imaginary[lower] * c;
                    real[lower] = real[upper] - a;
                    imaginary[lower] = imaginary[upper] - b;
                    real[upper] += a;
                    imaginary[upper] += b;
                }
            }
        }
    }
}

// Transforms of complex numbers, of any count: by a convolution with a chirp (L. Bluestein, 1970).
export class Fourier {
    constructor(count) {
        this.count = count;
        this.isFast = fastLength(count) === count;
        const size = this.isFast ? count : fastLength(2 * count);
        this._fast = new PowerOfTwo(size);
        this._size = size;
        if (this.isFast) return;
        // k² modulo 2n keeps the angle exact.
        const angle = (k) => (Math.PI * ((k * k) % (2 * count))) / count;
        this._cosines = Float64Array.from({ length: count }, (_, k) => Math.cos(angle(k)));
        this._sines = Float64Array.from({ length: count }, (_, k) => Math.sin(angle(k)));
        this._chirp = [new Float64Array(size), new Float64Array(size)];
        for (let k = 0; k < count; k++) {
            for (const at of k === 0 ? [0] : [k, size - k]) {
                this._chirp[0][at] = this._cosines[k];
                this._chirp[1][at] = this._sines[k];
            }
        }
        this._fast.run(...this._chirp);
    }

    // The transform of real numbers, and perhaps of imaginary ones: [real parts, imaginary parts].
    of(values, imaginary = null) {
        const { count, _size: size } = this, re = new Float64Array(size), im = new Float64Array(size);
        if (this.isFast) {
            re.set(values);
            if (imaginary !== null) im.set(imaginary);
            this._fast.run(re, im);
            return [re, im];
        }
        for (let k = 0; k < count; k++) {
            const c = this._cosines[k], s = -this._sines[k], x = values[k], y = imaginary === null ? 0 : imaginary[k];
            re[k] = x * c - y * s;
            im[k] = x * s + y * c;
        }
        this._fast.run(re, im);
        const [chirpRe, chirpIm] = this._chirp;
        for (let k = 0; k < size; k++) {
            const x = re[k] * chirpRe[k] - im[k] * chirpIm[k], y = re[k] * chirpIm[k] + im[k] * chirpRe[k];
            // The inverse transform is that of the conjugate.
            re[k] = x;
            im[k] = -y;
        }
        this._fast.run(re, im);
        const foundRe = new Float64Array(count), foundIm = new Float64Array(count);
        for (let k = 0; k < count; k++) {
            const x = re[k] / size, y = -im[k] / size, c = this._cosines[k], s = -this._sines[k];
            foundRe[k] = x * c - y * s;
            foundIm[k] = x * s + y * c;
        }
        return [foundRe, foundIm];
    }

    // The powers of the bins up to the middle, of real numbers.
    powers(values) {
        if (this.count % 2 === 0) return this._evenPowers(values);
        const [re, im] = this.of(values);
        const found = new Float64Array(Math.floor(this.count / 2) + 1);
        for (let k = 0; k < found.length; k++) found[k] = re[k] * re[k] + im[k] * im[k];
        return found;
    }

    // The same by a transform of half the length: of complex numbers, each made of two neighbours.
    _evenPowers(values) {
        const middle = this.count / 2, found = new Float64Array(middle + 1);
        this._half ??= new Fourier(middle);
        this._turns ??= Float64Array.from({ length: 2 * (middle + 1) }, (_, at) => {
            const angle = (2 * Math.PI * (at >> 1)) / this.count;
            return at & 1 ? Math.sin(angle) : Math.cos(angle);
        });
        const even = new Float64Array(middle), odd = new Float64Array(middle);
        for (let k = 0; k < middle; k++) {
            even[k] = values[2 * k];
            odd[k] = values[2 * k + 1];
        }
        const [re, im] = this._half.of(even, odd);
        for (let k = 0; k <= middle; k++) {
            const at = k === middle ? 0 : k, other = k === 0 ? 0 : middle - k, c = this._turns[2 * k], s = this._turns[2 * k + 1];
            // The transforms of the even and of the odd numbers.
            const evenRe = (re[at] + re[other]) / 2, evenIm = (im[at] - im[other]) / 2;
            const oddRe = (im[at] + im[other]) / 2, oddIm = (re[other] - re[at]) / 2;
            const x = evenRe + c * oddRe + s * oddIm, y = evenIm + c * oddIm - s * oddRe;
            found[k] = x * x + y * y;
        }
        return found;
    }

    // The real numbers whose transform this is.
    inverse(re, im) {
        const [found] = this.of(re, im.map((value) => -value));
        return found.map((value) => value / this.count);
    }
}
