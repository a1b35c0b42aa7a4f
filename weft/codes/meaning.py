"""Codes about what a patch means: names, calls, bundles, memory, sources and patterns."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codes.rows import CodeSpec

MEANING: Sequence[CodeSpec] = (
    CodeSpec(
        "analysis-in-loop",
        "What listens to a sound (fft, onset, pitch, …) runs once, so it cannot be in a loop: bind it before the "
        "loop, and use its result inside.",
        wrong=(
            "spindle lit(s) :: v {\n  for i in (1 to 3) { v += rms(s) * i }\n}\n"
            "display(lit(sin(me@time * 440)))"
        ),
        right=(
            "spindle lit(s) :: v {\n  loud = rms(s)\n  for i in (1 to 3) { v += loud * i }\n}\n"
            "display(lit(sin(me@time * 440)))"
        ),
    ),
    CodeSpec(
        "argument-out-of-range",
        "This number decides how the source is prepared: it has to be within the limits in the message, and whole if "
        "that says so.",
        wrong="fft(sin(me@time * 440), bands: 0)::f<low>\ndisplay(f@low)",
        right="fft(sin(me@time * 440), bands: 32)::f<low>\ndisplay(f@low)",
    ),
    CodeSpec(
        "axis-name",
        "In every cache, `k` is how long ago, so no output can have that name: choose another one.",
        wrong="wave = sin(me@x * 9 + me@time)\ncache(wave, 30)::c<k>\ndisplay(c@k)",
        right="wave = sin(me@x * 9 + me@time)\ncache(wave, 30)::c<v>\ndisplay(c@v(c@k ~ 10))",
    ),
    CodeSpec(
        "bound-in-two-files",
        "Two files give this name a value, and weft cannot tell which one you mean: rename one of them.",
        wrong='#include "shapes.weft"   // which has a ring of its own\nring = me@x\ndisplay(ring)',
        right='#include "shapes.weft"   // which has a ring of its own\nband = me@x\ndisplay(ring * band)',
    ),
    CodeSpec(
        "cache-needs-a-name",
        "A cache is read by its name and its axis, as in c@v(c@k ~ 5): give it a name after `::`.",
        wrong="wave = sin(me@x * 9 + me@time)\ndisplay(cache(wave, 30))",
        right="wave = sin(me@x * 9 + me@time)\ncache(wave, 30)::c<v>\ndisplay(c@v(c@k ~ 10))",
    ),
    CodeSpec(
        "call-without-arguments",
        "This is the name of something to call: add parentheses with what it works on.",
        wrong="display(noise)",
        right="display(noise(me@x * 9))",
    ),
    CodeSpec(
        "cannot-read-across",
        "This strand is computed elsewhere in the patch, which hands over only its current value: remember it with "
        "delay(…) or cache(…). Of a sound, what was played is kept for a while.",
        wrong="trail = max(me@x, prev(trail) * 0.9)\ndisplay(trail)\ncompute(trail(me@time ~ me@time - 1))",
        right="trail = max(me@x, prev(trail) * 0.9)\ndisplay(trail)\ncompute(delay(trail, 60, 60))",
    ),
    CodeSpec(
        "comprehension-steps",
        "A bundle has 1 to 64 members, and both ends count: (1 to 8) makes eight.",
        wrong="rings = <sin(me@x * i) for i in (1 to 100)>\ndisplay(sum(rings) / 100)",
        right="rings = <sin(me@x * i) for i in (1 to 10)>\ndisplay(sum(rings) / 10)",
    ),
    CodeSpec(
        "copies-out-of-range",
        "One call can be made for at most 64 members: use fewer, or a loop inside the spindle.",
        wrong=(
            "spindle wave(f) :: v { v = sin(f * me@x) }\n"
            "many = join(<i for i in (1 to 40)>, <i for i in (41 to 80)>)\ndisplay(sum(wave(many)) / 80)"
        ),
        right=(
            "spindle wave(f) :: v { v = sin(f * me@x) }\nmany = <i for i in (1 to 40)>\n"
            "display(sum(wave(many)) / 40)"
        ),
    ),
    CodeSpec(
        "count-as-level",
        "A count only ever grows, so what is computed from it stays above 0: use the count itself as the trigger, and "
        "apply the level afterwards.",
        wrong='#use std.control\nkick = osc("/kick")@count\ndisplay(rise(kick * 0.5))',
        right='#use std.control\nkick = osc("/kick")@count\ndisplay(rise(kick) * 0.5)',
    ),
    CodeSpec(
        "count-mismatch",
        "The numbers of strands do not match: bundles in one expression need equally many members, and a list needs "
        "as many names as there are values.",
        wrong="display(<me@x, me@y> + <0.1, 0.2, 0.3>)",
        right="display(<me@x, me@y, 0> + <0.1, 0.2, 0.3>)",
    ),
    CodeSpec(
        "cycle",
        "A strand needs its own value before it has one: prev(…) takes the value of one tick ago.",
        wrong="trail = max(me@x, trail * 0.9)\ndisplay(trail)",
        right="trail = max(me@x, prev(trail) * 0.9)\ndisplay(trail)",
    ),
    CodeSpec(
        "double-map",
        "Two maps in one list move the same coordinate: combine them into one.",
        wrong="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ me@x * 2, me@px ~ me@px + 10))",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ me@x * 2 + 0.1))",
    ),
    CodeSpec(
        "duplicate-argument",
        "Each parameter of a call gets one value, and this one already has a value by position.",
        wrong="display(clamp(me@x, 0.2, lo: 0.4))",
        right="display(clamp(me@x, 0.2, hi: 0.4))",
    ),
    CodeSpec(
        "duplicate-binding",
        "A name has one value for the whole patch: rename one of the two, or take one out.",
        wrong="wave = sin(me@x * 9)\nwave = cos(me@x * 9)\ndisplay(wave)",
        right="wave = sin(me@x * 9)\nother = cos(me@x * 9)\ndisplay(wave + other)",
    ),
    CodeSpec(
        "duplicate-pragma",
        "This is said twice, and only one can hold: take one of them out.",
        wrong="#fade 1\n#fade 2\ndisplay(me@x)",
        right="#fade 2\ndisplay(me@x)",
    ),
    CodeSpec(
        "duplicate-setting",
        "A setting has one value for the whole patch: take one of the two lines out.",
        wrong="me<bpm> = 120\nme<bpm> = 140\ndisplay(me@beatphase)",
        right="me<bpm> = 140\ndisplay(me@beatphase)",
    ),
    CodeSpec(
        "duplicate-spindle",
        "Two spindles have the same name: rename one of them.",
        wrong="spindle wave(x) :: v { v = sin(x * 9) }\nspindle wave(x) :: v { v = cos(x * 9) }\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v { v = sin(x * 9) }\nspindle other(x) :: v { v = cos(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "duplicate-statement",
        "A window shows one picture: combine the two, or send one to a window of its own.",
        wrong="display(me@x)\ndisplay(me@y)",
        right='display(me@x)\ndisplay(me@y, to: "second")',
    ),
    CodeSpec(
        "false-friend",
        "This works, but means something else here than in the tool that you may know it from: the hint says what you "
        "may want instead.",
        wrong="display(noise(3, 0.1))",
        right="display(noise(me@x * 3, me@y * 3, me@time * 0.1))",
        severity="warning",
    ),
    CodeSpec(
        "film-elsewhere",
        "A film is a picture, so a sound cannot play it: its sound is bound as ::s<l, r>.",
        wrong='audio(load("film.mp4")@r * 0.1)',
        right='load("film.mp4")::f<r>\naudio(sin(me@time * 440) * f@r)',
    ),
    CodeSpec(
        "film-time-varies",
        "A film shows one picture per frame, so its time cannot change from pixel to pixel: remember its pictures "
        "with cache(…), and choose among those.",
        wrong='load("film.mp4")::f<r>\ndisplay(f@r(me@time ~ me@time - me@x))',
        right='load("film.mp4")::f<r>\ncache(f, 60)::c<r>\ndisplay(c@r(c@k ~ me@x * 59))',
    ),
    CodeSpec(
        "group-in-loop",
        "What a call is bound to inside a loop belongs to one step, so it cannot have a name from outside: choose a "
        "new one.",
        wrong=(
            "spindle both(x) :: <a, b> {\n  out a = x\n  out b = x * 2\n}\nspindle sums(x) :: v {\n  p = 0\n"
            "  for i in (1 to 3) {\n    both(x * i)::p<a, b>\n    v += p@a\n  }\n}\ndisplay(sums(me@x))"
        ),
        right=(
            "spindle both(x) :: <a, b> {\n  out a = x\n  out b = x * 2\n}\nspindle sums(x) :: v {\n"
            "  for i in (1 to 3) {\n    both(x * i)::q<a, b>\n    v += q@a\n  }\n}\ndisplay(sums(me@x))"
        ),
    ),
    CodeSpec(
        "incomplete-name",
        "`mouse` and `key` hold many values: say which one, as in mouse@x or key@space.",
        wrong="display(mouse)",
        right="display(mouse@x)",
    ),
    CodeSpec(
        "index-out-of-range",
        "Elements are counted from 0, so the last of three is [2].",
        wrong="tint = <1, 0.5, 0>\ndisplay(tint[3])",
        right="tint = <1, 0.5, 0>\ndisplay(tint[2])",
    ),
    CodeSpec(
        "label-in-remap",
        "Called like this, a strand is remapped by position, and takes no labels: to move one coordinate, write a map "
        "with `~`.",
        wrong="wave = sin(me@x * 9)\ndisplay(wave(x: 1 - me@x))",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ 1 - me@x))",
    ),
    CodeSpec(
        "level-out-of-range",
        "Each level halves the width and the height of an image: 0 is the whole picture, and 14 a single pixel.",
        wrong="display(image(me@x, 0.5))",
        right="display(image(me@x, 1))",
    ),
    CodeSpec(
        "long-time",
        "A picture counts with seven digits, so after hours this begins to move in jerks: let the time begin again, "
        "as in me@time % 600, or use phasor(…).",
        wrong="display(fract(abs(me@x - me@time)))",
        right="display(fract(me@x - me@time))",
        severity="warning",
    ),
    CodeSpec(
        "loop-stopped",
        "The ends of this loop vary, and it takes more steps than it may (4096, or 65,536 with inner loops), so the "
        "rest is left out: bring its end down.",
        wrong="spindle sums(n) :: v { for i in (1 to n) { v += 1 / i } }\ndisplay(sums(me@px * 100) * 0.1)",
        right="spindle sums(n) :: v { for i in (1 to n) { v += 1 / i } }\ndisplay(sums(me@px) * 0.1)",
        severity="warning",
    ),
    CodeSpec(
        "loop-too-long",
        "A loop may take 4096 steps, since every pixel or sample goes through all of them: use fewer.",
        wrong="spindle sums(x) :: v { for i in (1 to 5000) { v += sin(x * i) } }\ndisplay(sums(me@x))",
        right="spindle sums(x) :: v { for i in (1 to 50) { v += sin(x * i) } }\ndisplay(sums(me@x))",
    ),
    CodeSpec(
        "loop-variable-assigned",
        "The loop itself counts with this name: use another name for what you compute.",
        wrong=(
            "spindle sums(x) :: v {\n  for i in (1 to 3) {\n    i = i * 2\n    v += sin(x * i)\n  }\n}\n"
            "display(sums(me@x))"
        ),
        right=(
            "spindle sums(x) :: v {\n  for i in (1 to 3) {\n    k = i * 2\n    v += sin(x * k)\n  }\n}\n"
            "display(sums(me@x))"
        ),
    ),
    CodeSpec(
        "lost-coordinate",
        "This strand is computed elsewhere in the patch, where this coordinate is another one. Give what "
        "remembers a name of its own, and the rest is computed wherever it is read.",
        wrong="wave = phasor(2) + me@x\ndisplay(fract(wave))\naudio(sin(wave * tau))",
        right="p = phasor(2)\nwave = p + me@x\ndisplay(fract(wave))\naudio(sin(wave * tau))",
    ),
    CodeSpec(
        "map-reaches-state",
        "Memory moves on tick by tick, and cannot be looked up at another time: delay(…) and cache(…) read earlier "
        "values.",
        wrong="trail = prev(me@x) + me@time\ndisplay(trail(me@time ~ me@time - 1))",
        right="display(delay(me@x + me@time, 60, 60))",
    ),
    CodeSpec(
        "missing-argument",
        "The call needs more arguments than it has: the hint shows all of them.",
        wrong="display(mix(me@x, me@y))",
        right="display(mix(me@x, me@y, 0.5))",
    ),
    CodeSpec(
        "missing-label",
        "This statement takes its numbers by name, so that none is mistaken for another.",
        wrong="midi(60)",
        right="midi(note: 60, gate: mouse@down)",
    ),
    CodeSpec(
        "missing-letters",
        "The font has no shape for some of these letters, and shows boxes instead: name a font that has them.",
        wrong='text("春")::t<v>\ndisplay(t)',
        right='text("spring")::t<v>\ndisplay(t)',
        severity="warning",
    ),
    CodeSpec(
        "needs-a-constant",
        "This decides what is opened or prepared before anything is computed, so it is a plain number or text, not "
        "the result of something.",
        wrong="fft(sin(me@time * 440), bands: 2 + mouse@x)::f<low>\ndisplay(f@low)",
        right="fft(sin(me@time * 440), bands: 32)::f<low>\ndisplay(f@low * mouse@x)",
    ),
    CodeSpec(
        "needs-a-number",
        "This is prepared before anything is computed, so it is a plain number: what changes goes in a map, or in the "
        "arithmetic around it.",
        wrong='pattern("0 3 7", per: mouse@x)::p<value>\ndisplay(p@value / 12)',
        right='pattern("0 3 7", per: 4)::p<value>\ndisplay(p@value / 12)',
    ),
    CodeSpec(
        "needs-a-path",
        "A picture for another program needs a place that both know, after the word and its colon: a path, a port or "
        "an address.",
        wrong='display(me@x, to: "pipe:")',
        right='display(me@x, to: "pipe:picture.raw")',
    ),
    CodeSpec(
        "needs-a-strand",
        "This listens to a sound, so its first argument is a strand.",
        wrong='display(rms("kick"))',
        right="display(rms(sin(me@time * 440)))",
    ),
    CodeSpec(
        "needs-a-string",
        "A path, a name or an address is text in double quotes.",
        wrong="load(picture)::img<r, g, b>\ndisplay(img)",
        right='load("picture.png")::img<r, g, b>\ndisplay(img)',
    ),
    CodeSpec(
        "no-count",
        "Only events are counted: keys, buttons, and what others send; the number of members of a bundle is count(b).",
        wrong="wave = sin(me@x * 9)\ndisplay(wave@count)",
        right="display(key@space@count * 0.1)",
    ),
    CodeSpec(
        "no-output",
        "The patch computes, but shows and plays nothing: add display(…) or audio(…).",
        wrong="wave = sin(me@x * 9)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
        mild="from `weft check`, since a patch that others include shows nothing by itself",
    ),
    CodeSpec(
        "no-outputs",
        "This is one strand, so there is nothing to pick from it: leave `@` and the name after it out.",
        wrong="display((me@x * 9)@r)",
        right="display(me@x * 9)",
    ),
    CodeSpec(
        "no-sound",
        "This film has no sound to play: bind its picture alone.",
        wrong='load("film.mp4")::s<l, r>\naudio(s)',
        right='load("film.mp4")::f<r, g, b>\ndisplay(f)',
    ),
    CodeSpec(
        "not-a-coordinate",
        "A map moves a coordinate: x, y, the time and what derives from them, or the axis of a cache; everything else "
        "is the same everywhere.",
        wrong="wave = sin(me@x * 9) * mouse@x\ndisplay(wave(mouse@x ~ 0.5))",
        right="wave = sin(me@x * 9) * mouse@x\ndisplay(wave(me@x ~ 0.5))",
    ),
    CodeSpec(
        "not-a-number",
        "Values that are not numbers, as from 0/0 or the root of something negative, show as black or silence: keep "
        "the operation away from there, as with max(x, 0).",
        wrong="display(sqrt(me@x - 2))",
        right="display(sqrt(max(me@x - 2, 0)))",
        mild="where only some of the values are not numbers",
    ),
    CodeSpec(
        "not-allowed",
        "A patch opens only what is below its own folder, so that a stranger's patch cannot read your files: move the "
        "file there, or allow its folder with --allow if you trust the patch.",
        wrong='load("/srv/picture.png")::img<r, g, b>\ndisplay(img)',
        right='load("picture.png")::img<r, g, b>\ndisplay(img)',
    ),
    CodeSpec(
        "not-an-address",
        'An address of OSC starts with /, and has no blanks and none of the signs of patterns: "/fader/1".',
        wrong='display(osc("fader 1"))',
        right='display(osc("/fader/1"))',
    ),
    CodeSpec(
        "not-constant",
        "This decides how much is computed or remembered, so it has to be known before the first frame: a number, or "
        "something made of numbers and settings.",
        wrong="display(delay(me@x, 10, mouse@x * 60))",
        right="display(delay(me@x, mouse@x * 60, 60))",
    ),
    CodeSpec(
        "not-finite",
        "This grows without end, like feedback that adds more than it takes away: multiply what comes back by less "
        "than 1.",
        wrong="loud = prev(loud) * 2 + 1\ndisplay(loud)",
        right="loud = prev(loud) * 0.9 + 0.1\ndisplay(loud)",
        severity="warning",
    ),
    CodeSpec(
        "number-out-of-range",
        "There is no such place, as a universe of DMX has 512 channels, so nothing would arrive there: the message "
        "says which places there are.",
        wrong="lights(at: 600, me@beatphase)",
        right="lights(at: 60, me@beatphase)",
        severity="warning",
    ),
    CodeSpec(
        "outlet-address",
        "A picture for another program goes to a place that weft can read and check: the hint shows the form. `weft "
        "help display` lists all kinds.",
        wrong='display(me@x, to: "http:80")',
        right='display(me@x, to: "http:8080")',
    ),
    CodeSpec(
        "outlet-or-window",
        "This is the name of a window, and hardly differs from how a picture for another program is written: the hint "
        "shows that. If a window is meant, another name avoids the warning.",
        wrong='display(me@x, to: "HTTP:8080")',
        right='display(me@x, to: "http:8080")',
        severity="warning",
    ),
    CodeSpec(
        "output-assigned-twice",
        "`out = …` gives all outputs their values, so nothing else can give one of them another value: choose one "
        "way.",
        wrong="spindle pair(x) :: <a, b> {\n  out = <x, x * 2>\n  out a = x\n}\ndisplay(pair(me@x)@a)",
        right="spindle pair(x) :: <a, b> {\n  out a = x\n  out b = x * 2\n}\ndisplay(pair(me@x)@a)",
    ),
    CodeSpec(
        "output-not-assigned",
        "The head of the spindle promises this output, but its body never gives it a value.",
        wrong="spindle pair(x) :: <a, b> { out a = x }\ndisplay(pair(me@x)@a)",
        right="spindle pair(x) :: <a, b> {\n  out a = x\n  out b = x * 2\n}\ndisplay(pair(me@x)@a)",
    ),
    CodeSpec(
        "outputs-as-channels",
        "The outputs of this call are different things, and here they become colours or loudspeakers: pick the one "
        "that you mean with `@`.",
        wrong="display(midi_note())",
        right="display(midi_note()@velocity)",
        severity="warning",
    ),
    CodeSpec(
        "overrides-library",
        "The patch has a spindle with the name of one in a library that it uses, and the patch's own holds: rename it "
        "if you want the library's.",
        wrong="#use std.picture\nspindle vignette(img) :: v { v = img }\ndisplay(vignette(me@x))",
        right="#use std.picture\nspindle darker(img) :: v { v = img * 0.5 }\ndisplay(darker(me@x))",
        severity="warning",
    ),
    CodeSpec(
        "pattern-out-of-range",
        "A cycle of a pattern takes 0.001 to 10,000 beats.",
        wrong='pattern("0 3 7", per: 0)::p<value>\ndisplay(p@value / 12)',
        right='pattern("0 3 7", per: 2)::p<value>\ndisplay(p@value / 12)',
    ),
    CodeSpec(
        "pattern-syntax",
        "The mark shows where the text of the pattern stops making sense: `weft help pattern` shows how to write one.",
        wrong='pattern("bd [sn hh")::p<bd>\ndisplay(p@bd)',
        right='pattern("bd [sn hh]")::p<bd>\ndisplay(p@bd)',
    ),
    CodeSpec(
        "pattern-too-large",
        "A voice has at most 256 events, and repeats after at most 1024 cycles: make several patterns of it.",
        wrong='pattern("bd*300")::p<bd>\ndisplay(p@bd)',
        right='pattern("bd*30")::p<bd>\ndisplay(p@bd)',
    ),
    CodeSpec(
        "program-too-large",
        "The marked part makes so much work that a save would take seconds: use fewer steps, or give a name to what "
        "is repeated.",
        arises=(
            "A text whose loops, calls and remaps within each other take more than 1,200,000 steps to compile, "
            "such as 900 times 900 steps with a prev(…) in them."
        ),
    ),
    CodeSpec(
        "read-before-assignment",
        "A spindle runs from top to bottom, and this name has no value yet: move its line up; prev(…) reads it as it "
        "was a tick ago.",
        wrong="spindle wave(x) :: v {\n  v = wide * 9\n  wide = x * 2\n}\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v {\n  wide = x * 2\n  v = wide * 9\n}\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "recursion",
        "A spindle that calls itself never comes to an end: use a loop, or prev(…) for what grows over time.",
        wrong="spindle more(x) :: v { v = more(x * 2) }\ndisplay(more(me@x))",
        right="spindle more(x) :: v { for i in (1 to 4) { v += x * i } }\ndisplay(more(me@x))",
    ),
    CodeSpec(
        "reserved-name",
        "`me`, `mouse` and `key` belong to weft: choose another name.",
        wrong="mouse = me@x\ndisplay(me@x)",
        right="place = me@x\ndisplay(place)",
    ),
    CodeSpec(
        "setting-out-of-range",
        "This setting takes a number within the limits that the message names.",
        wrong="me<width> = 640.5\ndisplay(me@x)",
        right="me<width> = 640\ndisplay(me@x)",
    ),
    CodeSpec(
        "several-strands",
        "There is room for one strand here, and this is a bundle: take one with [0] or `@`, or make one of them with "
        "sum(…) or length(…).",
        wrong="tint = <1, 0.5, 0>\ncompute(tint, 1)",
        right="tint = <1, 0.5, 0>\ncompute(tint[0], 1)",
    ),
    CodeSpec(
        "shadows-builtin",
        "A spindle of the patch has the name of something that weft already has, and takes its place: rename it if "
        "you did not mean that.",
        wrong="spindle noise(x) :: v { v = sin(x * 9) }\ndisplay(noise(me@x))",
        right="spindle rough(x) :: v { v = sin(x * 9) }\ndisplay(rough(me@x))",
        severity="warning",
    ),
    CodeSpec(
        "state-in-varying-loop",
        "Each step of a loop needs a memory of its own, so a loop with memory in it always has the same number of "
        "steps.",
        wrong="spindle echo(x, n) :: v { for i in (1 to n) { v += prev(x * i) } }\ndisplay(echo(me@x, mouse@x * 5))",
        right="spindle echo(x) :: v { for i in (1 to 5) { v += prev(x * i) } }\ndisplay(echo(me@x))",
    ),
    CodeSpec(
        "still-picture",
        "Of a file that moves, only the first picture was shown. Files of this kind are films now, so there is nothing "
        "to do.",
        arises="load of a .webp of several pictures.",
        severity="warning",
        gone_since="0.7",
    ),
    CodeSpec(
        "text-as-number",
        "Text in quotes is not a number: it is for names, paths and addresses.",
        wrong='display(me@x * "2")',
        right="display(me@x * 2)",
    ),
    CodeSpec(
        "ticks-out-of-range",
        "What is remembered is a number of ticks, which are frames or samples: a whole number from 1 to 60,000,000.",
        wrong="wave = sin(me@x * 9 + me@time)\ncache(wave, 0.5)::c<v>\ndisplay(c@v(c@k ~ 10))",
        right="wave = sin(me@x * 9 + me@time)\ncache(wave, 30)::c<v>\ndisplay(c@v(c@k ~ 10))",
    ),
    CodeSpec(
        "too-many-arguments",
        "The call takes fewer arguments than it has: the hint shows all that it takes.",
        wrong="display(sin(me@x, 9))",
        right="display(sin(me@x * 9))",
    ),
    CodeSpec(
        "too-many-outputs",
        "The list has more names than there are values: take the last names out.",
        wrong="spindle wave(x) :: v { v = sin(x * 9) }\nwave(me@x)::w<a, b>\ndisplay(w@a)",
        right="spindle wave(x) :: v { v = sin(x * 9) }\nwave(me@x)::w<a>\ndisplay(w@a)",
    ),
    CodeSpec(
        "too-many-times",
        "A film can be read at 16 times at once: remember its last pictures with cache(…), and read those.",
        wrong=(
            'load("film.mp4")::f<r>\nechoes = <f@r(me@time ~ me@time - i) for i in (1 to 40)>\n'
            "display(sum(echoes) / 40)"
        ),
        right=(
            'load("film.mp4")::f<r>\ncache(f, 60)::c<r>\nechoes = <c@r(c@k ~ i) for i in (1 to 40)>\n'
            "display(sum(echoes) / 40)"
        ),
    ),
    CodeSpec(
        "unknown-alignment",
        'Lines of letters are aligned "left", "center" or "right".',
        wrong='text("hello", align: "middle")::t<v>\ndisplay(t)',
        right='text("hello", align: "center")::t<v>\ndisplay(t)',
    ),
    CodeSpec(
        "unknown-argument",
        "The call has no parameter with this name: the hint, or `weft help` and the name of the call, shows those "
        "that it has.",
        wrong="display(clamp(me@x, low: 0.2))",
        right="display(clamp(me@x, lo: 0.2))",
    ),
    CodeSpec(
        "unknown-call",
        "Nothing that can be called has this name: check the spelling, and whether its library is used at the top "
        "(`#use`).",
        wrong="display(vignette(me@x))",
        right="#use std.picture\ndisplay(vignette(me@x))",
    ),
    CodeSpec(
        "unknown-camera",
        "A camera is a number, the path of a device, or one of the test pictures that FFmpeg makes: `weft help "
        "camera` shows the forms.",
        wrong='camera("webcam")::c<r, g, b>\ndisplay(c)',
        right="camera(0)::c<r, g, b>\ndisplay(c)",
    ),
    CodeSpec(
        "unknown-choice",
        "This argument takes one of a few words, which the hint lists.",
        wrong='midi_note(order: "loudest")::n<note, gate>\ndisplay(n@gate)',
        right='midi_note(order: "newest")::n<note, gate>\ndisplay(n@gate)',
    ),
    CodeSpec(
        "unknown-media",
        "The ending of the name says what kind of file it is, and weft does not know this one: the hint lists those "
        "that it reads.",
        wrong='load("picture.psd")::img<r, g, b>\ndisplay(img)',
        right='load("picture.png")::img<r, g, b>\ndisplay(img)',
    ),
    CodeSpec(
        "unknown-output",
        "There is something with this name, but it has no such output: the hint shows those that it has.",
        wrong="img<r, g, b> = <me@x, me@y, 0>\ndisplay(img@red)",
        right="img<r, g, b> = <me@x, me@y, 0>\ndisplay(img@r)",
    ),
    CodeSpec(
        "unknown-setting",
        "There is no setting with this name: the hint shows the nearest one, or all.",
        wrong="me<tempo> = 140\ndisplay(me@beatphase)",
        right="me<bpm> = 140\ndisplay(me@beatphase)",
    ),
    CodeSpec(
        "unknown-statement",
        "A call on its own has to be an output statement, such as display(…) or audio(…): check the spelling, or give "
        "its result a name.",
        wrong="displya(me@x)",
        right="display(me@x)",
    ),
    CodeSpec(
        "unknown-strand",
        "No strand has this name: check the spelling, and whether the statement that gives it a value is still there.",
        wrong="wave = sin(me@x * 9)\ndisplay(wvae)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "unreadable-source",
        "The file is not there, is damaged, or you may not read it: its path starts in the folder of the patch.",
        wrong='load("pictures.png")::img<r, g, b>\ndisplay(img)',
        right='load("picture.png")::img<r, g, b>\ndisplay(img)',
    ),
    CodeSpec(
        "wrong-arguments",
        "What is shown or played has another number of values than the statement takes: a picture has 1, 3 or 4, a "
        "sound up to 8.",
        wrong="display(me@x, me@y)",
        right="display(me@x, me@y, 0)",
    ),
)
