"""Codes about files, devices and the command line, and about problems that appear only while a patch plays."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codes.rows import MISSING, USAGE, CodeSpec

PLAYING: Sequence[CodeSpec] = (
    CodeSpec(
        "backend-failed",
        "The device that was to run the program could not get ready for it, and weft takes the next one that can: "
        "`weft devices` shows them.",
        arises="A driver fails while it prepares a program.",
    ),
    CodeSpec(
        "backend-not-available",
        "The backend that you asked for cannot run this, or is not there: leave --backend out, and weft takes the "
        "best that works; `weft devices` says what is missing.",
        arises="--backend gl where there is no OpenGL, or --backend metal on Linux.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "backend-not-loaded",
        "A package that brings a backend cannot be loaded: update it, or remove it; everything else works.",
        arises="A package with the entry point `weft.backends` raises an error when it is imported.",
        severity="warning",
    ),
    CodeSpec(
        "clipped",
        "The sound is louder than a loudspeaker can play, so its peaks are cut off, which crackles: make it softer, "
        "or put a limiter at its end.",
        arises="weft render of a sound that goes above 1 or below -1.",
        severity="warning",
    ),
    CodeSpec(
        "context-not-available",
        "Nothing on this machine can run this output, so it is left out, and the rest plays: `weft devices` says what "
        "is missing.",
        arises=(
            "A patch with haptic(…) where no device takes it, or with an output of a package that is not "
            "installed."
        ),
        severity="warning",
    ),
    CodeSpec(
        "device-lost",
        "The device that computed this is gone, and nothing is left that could take over: check the card, its driver "
        "and its cable, and start again.",
        arises="A graphics card is unplugged, or its driver crashes or hangs, and no other backend can take over.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "display-lost",
        "The window cannot be drawn into any more: weft opens another one if it can; --terminal and --headless need "
        "none.",
        arises="The display server ends, or a laptop moves to another graphics card.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "driver-refused",
        "The driver of the graphics card does not take the program, so the processor draws it: an updated driver may "
        "help; please report it, since it is not your mistake.",
        arises="A driver has an error in its compiler, or a limit that a very large picture program exceeds.",
    ),
    CodeSpec(
        "events-file",
        "The file for events cannot be written: check that its folder is there, and that you may write to it.",
        arises="weft run --events with a file in a folder that does not exist.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "haptic-lost",
        "What takes the values of haptic(…) does not answer any more: check its cable and its program; everything "
        "else plays on.",
        arises="The program at the other end of haptic(…) ends while a patch plays.",
        severity="warning",
    ),
    CodeSpec(
        "haptic-outlet",
        "The file that is to take the values of haptic(…) cannot be written: make its folder, or name another one.",
        arises="A place for the values of haptic(…) in a folder that does not exist.",
    ),
    CodeSpec(
        "internal",
        "This is a mistake in weft, not in your patch: the last good version plays on; please report it, with the "
        "text of the patch.",
        arises="A part of weft fails in a way that was not foreseen.",
    ),
    CodeSpec(
        "late",
        "Frames were late for two seconds: a smaller picture helps most, and the message names the statement that "
        "takes most of the time.",
        arises="A patch plays that is too heavy for this machine, or other programs take its time.",
        severity="warning",
    ),
    CodeSpec(
        "lights-host",
        "The machine that lights are to be sent to is not found: check how it is written, and that both are in the "
        "same network.",
        arises="weft run --lights sacn: with the name of a machine that does not exist.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "microphone-silent",
        "A render has no microphone, so mic() is silent in it: record what you want to hear, and load that file.",
        arises="weft render of a patch with mic().",
        severity="warning",
    ),
    CodeSpec(
        "no-camera",
        "There is no camera here that can be read, or another program holds it: connect it, or name another one; "
        "`weft help camera` shows how.",
        arises="camera(0) where no camera is connected.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "no-display",
        "No window can be opened here: --terminal shows the picture in the terminal, and --headless runs without one.",
        arises="weft run over ssh, or where no desktop runs.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "no-link",
        "Ableton Link needs a package that is not installed: the hint says how to get it.",
        arises="weft run --link without the package for it.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "no-monitor",
        "There is no monitor with this number: the window opens on another one, and moves there as soon as it is "
        "connected.",
        arises="weft run --monitor 2 with one monitor.",
        severity="warning",
    ),
    CodeSpec(
        "no-patch",
        "There is no patch in this folder: name a file that ends in .weft, or write a first one with `weft new`.",
        arises="weft run --watch-dir with a folder that holds no .weft file.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "no-program",
        "This cannot be a program in C, which has nothing but its own numbers: no pictures, films, cameras and sounds "
        "from outside, and nothing that another part of the patch computes. `weft render` writes it as a file.",
        arises="weft compile --dump-c of a patch that shows a camera, or that has no picture and no sound.",
    ),
    CodeSpec(
        "no-sound-device",
        "There is nothing to play the sound: connect or choose a device (the hint lists those that are there), or "
        "start with --no-audio.",
        arises="weft run --audio-device with a name that fits no device, or on a machine without sound.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "no-such-output",
        "The patch has no such output statement: it is named by its word, by the name of its window, or by its line.",
        arises='weft why --name hall of a patch that shows nothing with `to: "hall"`.',
        exit_code=USAGE,
    ),
    CodeSpec(
        "no-terminal",
        "The picture was to be shown in the terminal, but this is not one that can show it: open a window, or use "
        "--headless.",
        arises="weft run --terminal with its output in a file or a pipe.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "no-wall",
        "Windows that Metal or WebGPU drew could not pin, turn or blend pictures. They can now, so there is nothing to "
        "do.",
        arises="weft run --warp turn:90 where Metal or WebGPU drew the window.",
        severity="warning",
        gone_since="0.7",
    ),
    CodeSpec(
        "not-drawn",
        "What you evaluate as a sound reads a picture, which is drawn only when the patch plays: evaluate it as a "
        "picture, or render it.",
        arises="weft eval --samples of a strand that reads a film.",
    ),
    CodeSpec(
        "not-enough-memory",
        "What the patch remembers does not fit into free memory: remember fewer ticks, make the picture smaller, or "
        "end other programs.",
        arises="A patch with cache(…) or delay(…) of very many frames, or a machine that is nearly full.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "not-for-this-device",
        "This backend computes only pictures, or no single strands: `--backend native` computes everything.",
        arises="weft eval --samples --backend gl.",
    ),
    CodeSpec(
        "not-in-a-page",
        "A page in a browser cannot do this, for the reason in the message; everything else in it plays. `weft run` "
        "plays all of the patch.",
        arises="weft export of a patch that sends by OSC.",
        severity="warning",
    ),
    CodeSpec(
        "nothing-in-a-page",
        "A page in a browser shows pictures and plays sounds, and this patch has neither, or none that a page can "
        "compute: add display(…) or audio(…).",
        arises="weft export of a patch that only sends by OSC.",
    ),
    CodeSpec(
        "nothing-to-hear",
        "The patch plays nothing, so there is no sound to write: add audio(…), or render a picture.",
        arises="weft render to a .wav of a patch without audio(…).",
    ),
    CodeSpec(
        "nothing-to-show",
        "The patch shows nothing, so there is no picture to write: add display(…), or render a sound.",
        arises="weft render to a .png of a patch without display(…).",
    ),
    CodeSpec(
        "osc-host",
        "The machine that OSC is to be sent to is not found: check how it is written, and that both are in the same "
        "network.",
        arises="weft run --osc-send with the name of a machine that does not exist.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "osc-port",
        "Messages of OSC cannot be received there, mostly because another program already does: end that one, or "
        "choose another port.",
        arises="weft run --osc 9000 twice at the same time.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "outlet-not-loaded",
        "A package that brings an outlet cannot be loaded: update it, or remove it; everything else works.",
        arises="A package with the entry point `weft.outlets` raises an error when it is imported.",
        severity="warning",
    ),
    CodeSpec(
        "picture-too-large",
        "The picture is larger than this device can draw or show: make it smaller, or let the processor draw it "
        "(--backend native).",
        arises="me<width> = 16384 on a graphics card that takes 8192.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "silent",
        "Not a single sample of the sound differs from 0: check whether its trigger comes, and whether a factor is 0.",
        arises="weft render of a sound that never sounds.",
        severity="warning",
    ),
    CodeSpec(
        "slow",
        "The picture takes longer than a frame on this machine, so it will stutter: a smaller picture helps most, "
        "then shorter loops; the message names the costliest statement.",
        arises="weft check, or a save, of a patch that is too heavy for this machine.",
        severity="warning",
    ),
    CodeSpec(
        "sound-device-busy",
        "Another program holds the sound device alone: end that program, or choose another device with "
        "--audio-device.",
        arises="A program for making music has taken the sound card for itself.",
    ),
    CodeSpec(
        "sound-device-failed",
        "The sound device does not open, or does not answer: unplug it and plug it in again, or choose another one "
        "with --audio-device.",
        arises="A sound card that was removed, or a sound server that hangs.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "sound-device-lost",
        "The sound device went away while it played: weft looks for it, and plays on when it is back; the picture "
        "continues meanwhile.",
        arises="The cable of a USB sound card slips out.",
    ),
    CodeSpec(
        "sound-died",
        "The process that plays the sound has ended, and starts again by itself; please report it if it happens "
        "twice.",
        arises="Another program kills it, or a driver of the sound card crashes it.",
    ),
    CodeSpec(
        "sound-too-long",
        "The sound is longer than a graphics card can hold: the processor takes it (--backend native).",
        arises="A picture that reads samples of a sound file of several hours.",
    ),
    CodeSpec(
        "source-not-loaded",
        "A package that brings a source cannot be loaded: update it, or remove it; everything else works.",
        arises="A package with the entry point `weft.sources` raises an error when it is imported.",
        severity="warning",
    ),
    CodeSpec(
        "steady-sound",
        "Most of this sound stands still, which holds a loudspeaker away from its middle and may damage it: take the "
        "constant part out.",
        arises="A sound such as audio(0.8), or a slow value that was meant for a picture.",
        severity="warning",
    ),
    CodeSpec(
        "too-far",
        "A patch that remembers plays all frames before the one you ask for, and here these are too many: ask for an "
        "earlier time.",
        arises="weft render --time 1e9 of a patch with prev(…).",
        exit_code=USAGE,
    ),
    CodeSpec(
        "too-many-analyses",
        "A patch can listen to 16 sounds at once: analyse a sum of several, or use one analysis twice.",
        arises="A patch with more than 16 calls such as fft(…) of different sounds.",
    ),
    CodeSpec(
        "too-many-controls",
        "Sounds can follow 1024 parameters, keys and other numbers: read fewer of them.",
        arises="Sounds that read more than 1024 numbers that change while they play.",
    ),
    CodeSpec(
        "too-many-heard",
        "Pictures and numbers can read a limited number of strands of a sound, which the message names: read one "
        "instead of several.",
        arises="A picture that shows very many strands of a sound.",
    ),
    CodeSpec(
        "too-many-seen",
        "Sounds can read 8 strands of pictures at places of their own: read one instead of several.",
        arises="A sound that reads more than 8 different strands of pictures, each at places that vary.",
    ),
    CodeSpec(
        "too-slow",
        "One frame, or one block of sound, would take so long that the performance would stop, so the program is "
        "refused, and the last good one plays on: shorten its loops, or make the picture smaller.",
        arises="A save whose picture takes many seconds, or whose sound takes longer than it lasts.",
    ),
    CodeSpec(
        "unknown-backend",
        "There is no backend with this name: `weft devices` lists them all.",
        arises="weft run --backend openlg.",
        exit_code=USAGE,
    ),
    CodeSpec(
        "unknown-context",
        "There is no context with this name: `weft devices` lists visual, audio, compute and the others.",
        arises="weft run --backend vidual=gl.",
        exit_code=USAGE,
    ),
    CodeSpec(
        "unknown-name",
        "Nothing has this name: `weft help` alone lists all that there is.",
        arises="weft help smothstep.",
        exit_code=USAGE,
    ),
    CodeSpec(
        "unreadable-file",
        "The patch itself is not there, or you may not read it: check how its name is written, and which folder you "
        "are in.",
        arises="weft check hallo.weft, where the file is called hello.weft.",
        exit_code=MISSING,
    ),
    CodeSpec(
        "unsuitable",
        "A graphics card cannot compute this, for the reason in the message: leave --backend out, and the processor "
        "does.",
        arises=(
            "A picture with more images than a card takes at once, or a sound of which each sample needs the one "
            "before, for --backend gl alone."
        ),
    ),
)
