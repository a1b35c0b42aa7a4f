// A picture that does not move: a moment of the patch, with all that it remembers until then, and without sound.

import { Offline, mixerOf, openFilms } from "./offline.js";

// How long the page may be busy at once, in milliseconds.
const BUSY = 30;

// Draws the moment at `time` on a screen. `isWanted` says whether it is still wanted.
export async function drawStill(description, media, screen, time, isWanted) {
    const { fps } = description.settings, last = Math.floor(time * fps + 1e-3);
    const { together } = description;
    const remembers = together || description.subgraphs.some(({ slots }) => slots.length > 0);
    const mixer = together ? await mixerOf(description, media) : null;
    const offline = new Offline(description, media, mixer, { fps, canvas: screen.canvas });
    const { player } = offline;
    if (player === null || player.shown.length === 0) return;
    const films = await openFilms(description, player, (text) => console.warn(text));
    await films.ready;
    let begun = performance.now();
    for (let number = remembers ? 0 : last; number <= last; number++) {
        if (performance.now() - begun > BUSY) {
            await new Promise((resolve) => setTimeout(resolve));
            begun = performance.now();
        }
        if (!isWanted()) return;
        offline.frame(number, number === last ? time : number / fps);
    }
    screen.open(player.shown);
    screen.show(player.card, player.shown);
}
