# Patches of weft: colours, indentation, :lint by `weft check`, :format by `weft fmt` and :weft-send by `weft send`.

hook global BufCreate .*\.weft %{
    set-option buffer filetype weft
}

hook global WinSetOption filetype=weft %{
    require-module weft
    set-option window static_words %opt{weft_words}
    set-option window lintcmd %{sh -c 'weft check "$1" 2>&1 | grep -E "^[^ ]+:[0-9]+:[0-9]+: (error|warning): "' weft-check}
    set-option window formatcmd 'weft fmt -'
    hook window InsertChar \n -group weft-indent weft-indent-on-new-line
    hook window InsertChar [)\x7d\]] -group weft-indent weft-indent-on-closing
    hook -once -always window WinSetOption filetype=.* %{ remove-hooks window weft-.+ }
}

# In here { is \x7b and } is \x7d, since braces quote.

hook -group weft-highlight global WinSetOption filetype=weft %{
    add-highlighter window/weft ref weft
    hook -once -always window WinSetOption filetype=.* %{ remove-highlighter window/weft }
}

hook global BufSetOption filetype=weft %{
    set-option buffer indentwidth 2
    set-option buffer comment_line '//'
    set-option buffer comment_block_begin '/*'
    set-option buffer comment_block_end '*/'
}

provide-module weft %§

add-highlighter shared/weft regions
add-highlighter shared/weft/code default-region group
add-highlighter shared/weft/string region '"' (?<!\\)(\\\\)*"|$ fill string
add-highlighter shared/weft/doc region '///(?!/)' $ fill documentation
add-highlighter shared/weft/line region '//' $ fill comment
add-highlighter shared/weft/block region '/\*' '\*/' fill comment

add-highlighter shared/weft/code/ regex '(?:\b[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?' 0:value
add-highlighter shared/weft/code/ regex '\|>|::|[-+*/%^=<>!~]+' 0:operator
add-highlighter shared/weft/code/ regex '\bspindle\h+(\w+)' 1:function

declare-option str-list weft_words

evaluate-commands %sh{
# words: choosing
    choosing='else if then'
# words end
# words: repeating
    repeating='for in to'
# words end
# words: defining
    defining='let out spindle'
# words end
# words: joining
    joining='and not or'
# words end
# words: reserved
    reserved='key me mouse'
# words end
# words: outputs
    outputs='audio compute display haptic lights midi osc_send play render'
# words end
# words: functions
    functions='abs acos asin atan atan2 cache camera cbrt ceil clamp cos cosh count cross deg delay desktop distance dot
        exp exp2 fbm fft floor fract hash held hold hypot image integrate join length lerp load log log10 log2 max mean
        mic midi_bend midi_cc midi_note midi_pressure midi_program min mix mod noise normalize onset osc pad pattern
        peak phasor pitch pow prev product rad reverse rises rms round saturate select seq sign simplex sin sinh
        smooth_seq smoothstep sqrt step sum tan tanh tempo text trunc unit voronoi window'
# words end
# words: constants
    constants='e pi tau'
# words end
# words: pragmas
    pragmas='button color fade include menu quantize slider toggle use xy'
# words end

    any_of() { printf '%s' "$*" | tr -s ' ' '|'; }
    colours() {
        face=$1
        shift
        # shellcheck disable=SC2068 # lists of words are meant to be split
        printf "add-highlighter shared/weft/code/ regex '\\\\b(?:%s)\\\\b' 0:%s\n" "$(any_of $@)" "$face"
    }
    colours keyword $choosing $repeating $defining $joining $outputs
    colours builtin $functions
    colours value $constants
    colours variable $reserved
    printf "add-highlighter shared/weft/code/ regex '^\\\\h*#(?:%s)\\\\b' 0:meta\n" "$(any_of $pragmas)"
    printf 'set-option global weft_words %s\n' \
        "$(printf '%s ' $choosing $repeating $defining $joining $outputs $functions $constants $reserved)"
}

# After the lists, so that a member is none of their words.
add-highlighter shared/weft/code/ regex '@\h*(\w+)' 1:attribute

define-command -docstring 'weft-send: have the performance that runs play the text as it is, without a save' weft-send %{
    evaluate-commands -save-regs t %{
        evaluate-commands -draft %{
            execute-keys '%'
            set-register t %sh{ printf '%s\n' "$kak_selection" | weft send - --as "$kak_buffile" 2>&1 }
        }
        info -title weft -- %reg{t}
    }
}

define-command -hidden weft-indent-on-new-line %{
    evaluate-commands -draft -itersel %{
        try %{ execute-keys -draft <semicolon> K <a-&> }
        try %{ execute-keys -draft k x <a-k> [(\x7b[]\h*(//.*)?$ <ret> j <a-gt> }
        try %{ execute-keys -draft x <a-k> ^\h*[)\x7d\]] <ret> <a-lt> }
    }
}

define-command -hidden weft-indent-on-closing %{
    evaluate-commands -draft -itersel %{
        try %{ execute-keys -draft x <a-k> ^\h*[)\x7d\]]$ <ret> m <a-S> 1 <a-&> }
    }
}

§
