;;; weft-mode.el --- patches of weft, a language for live coding -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: languages
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Colours and indentation for patches, and the language server by `eglot': M-x eglot in a patch, or
;; (add-hook 'weft-mode-hook #'eglot-ensure).  C-c C-f brings a patch in style, C-c C-c lists its mistakes, and
;; C-c C-s has the performance that runs play it without a save.

;;; Code:

(defgroup weft nil "Patches of weft." :group 'languages)

(defcustom weft-command "weft" "The command that is weft." :type 'string)

(defcustom weft-indent-offset 2 "The spaces by which a block is indented." :type 'integer :safe #'integerp)

;; words: choosing
(defconst weft--choosing
  '("else" "if" "then"))
;; words end
;; words: repeating
(defconst weft--repeating
  '("for" "in" "to"))
;; words end
;; words: defining
(defconst weft--defining
  '("let" "out" "spindle"))
;; words end
;; words: joining
(defconst weft--joining
  '("and" "not" "or"))
;; words end
;; words: reserved
(defconst weft--reserved
  '("key" "me" "mouse"))
;; words end
;; words: outputs
(defconst weft--outputs
  '("audio" "compute" "display" "haptic" "lights" "midi" "osc_send" "play" "render"))
;; words end
;; words: functions
(defconst weft--functions
  '("abs" "acos" "asin" "atan" "atan2" "cache" "camera" "cbrt" "ceil" "clamp" "cos" "cosh" "count" "cross" "deg" "delay"
    "desktop" "distance" "dot" "exp" "exp2" "fbm" "fft" "floor" "fract" "hash" "held" "hold" "hypot" "image" "integrate"
    "join" "length" "lerp" "load" "log" "log10" "log2" "max" "mean" "mic" "midi_bend" "midi_cc" "midi_note"
    "midi_pressure" "midi_program" "min" "mix" "mod" "noise" "normalize" "onset" "osc" "pad" "pattern" "peak" "phasor"
    "pitch" "pow" "prev" "product" "rad" "reverse" "rises" "rms" "round" "saturate" "select" "seq" "sign" "simplex"
    "sin" "sinh" "smooth_seq" "smoothstep" "sqrt" "step" "sum" "tan" "tanh" "tempo" "text" "trunc" "unit" "voronoi"
    "window"))
;; words end
;; words: constants
(defconst weft--constants
  '("e" "pi" "tau"))
;; words end
;; words: pragmas
(defconst weft--pragmas
  '("button" "color" "fade" "include" "menu" "quantize" "slider" "toggle" "use" "xy"))
;; words end

(defvar weft-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 124b" table)
    (modify-syntax-entry ?* ". 23" table)
    (modify-syntax-entry ?\n "> b" table)
    (modify-syntax-entry ?_ "_" table)
    (dolist (sign '(?< ?> ?= ?+ ?- ?% ?^ ?~ ?@ ?| ?! ?#) table)
      (modify-syntax-entry sign "." table)))
  "Comments are // and /* */.")

(defconst weft-font-lock-keywords
  `((,(concat "^[ \t]*#" (regexp-opt weft--pragmas) "\\_>") . font-lock-preprocessor-face)
    ("@[ \t]*\\([A-Za-z0-9_]+\\)" 1 font-lock-variable-name-face)
    ("\\_<spindle[ \t]+\\([A-Za-z_][A-Za-z0-9_]*\\)" 1 font-lock-function-name-face)
    (,(regexp-opt (append weft--choosing weft--repeating weft--defining weft--joining) 'symbols)
     . font-lock-keyword-face)
    (,(regexp-opt weft--outputs 'symbols) . font-lock-keyword-face)
    (,(regexp-opt weft--functions 'symbols) . font-lock-builtin-face)
    (,(regexp-opt (append weft--reserved weft--constants) 'symbols) . font-lock-constant-face)
    ("^[ \t]*\\([A-Za-z_][A-Za-z0-9_]*\\)[ \t]*\\(?:<[^>\n]*>[ \t]*\\)?=" 1 font-lock-variable-name-face))
  "Colours of patches.")

(defun weft--depth-before (position)
  "The depth of brackets before POSITION."
  (car (syntax-ppss position)))

(defun weft--goes-on-p ()
  "Whether the line before this one leaves its statement open."
  (save-excursion
    (forward-line 0)
    (forward-comment (- (point)))
    (and (not (bobp))
         (looking-back "[-+*/%^=~|]>?\\|\\_<\\(?:and\\|or\\|not\\|then\\|else\\)" (max (point-min) (- (point) 5))))))

(defun weft-indent-line ()
  "Indent as `weft fmt' does: by brackets, and where a statement goes on."
  (interactive)
  (let* ((depth (weft--depth-before (line-beginning-position)))
         (closing (save-excursion (back-to-indentation) (looking-at-p "[])}]")))
         (levels (+ depth (if closing -1 0) (if (and (not closing) (weft--goes-on-p)) 1 0)))
         (offset (- (current-column) (current-indentation))))
    (indent-line-to (* weft-indent-offset (max 0 levels)))
    (when (> offset 0) (forward-char offset))))

(defun weft--piped (output &rest arguments)
  "Run weft with ARGUMENTS on the text, into the buffer OUTPUT.
Return its exit status, and what it says."
  (let ((said (make-temp-file "weft")))
    (unwind-protect
        (cons (apply #'call-process-region nil nil weft-command nil (list output said) nil arguments)
              (with-temp-buffer (insert-file-contents said) (string-trim (buffer-string))))
      (delete-file said))))

(defun weft-format-buffer ()
  "Bring the patch in the style of `weft fmt'."
  (interactive)
  (let ((made (generate-new-buffer " *weft fmt*")))
    (unwind-protect
        (pcase-let ((`(,status . ,said) (weft--piped made "fmt" "-")))
          (if (eql status 0) (replace-buffer-contents made) (message "%s" said)))
      (kill-buffer made))))

(defun weft-send-buffer ()
  "Have the performance that runs play the text as it is, without a save."
  (interactive)
  (message "%s" (cdr (weft--piped nil "send" "-" "--as" (or buffer-file-name "")))))

(defun weft-check ()
  "List the mistakes of the patch, by `compile'."
  (interactive)
  (compile (format "%s check %s" weft-command (shell-quote-argument buffer-file-name))))

(defvar weft-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'weft-check)
    (define-key map (kbd "C-c C-f") #'weft-format-buffer)
    (define-key map (kbd "C-c C-s") #'weft-send-buffer)
    map)
  "Keys of patches.")

;;;###autoload
(define-derived-mode weft-mode prog-mode "weft"
  "Patches of weft."
  (setq-local comment-start "// ")
  (setq-local comment-end "")
  (setq-local comment-start-skip "\\(?://+\\|/\\*+\\)[ \t]*")
  (setq-local indent-tabs-mode nil)
  (setq-local indent-line-function #'weft-indent-line)
  (setq-local electric-indent-chars (append "{}()[]" electric-indent-chars))
  (setq-local font-lock-defaults '(weft-font-lock-keywords))
  (setq-local imenu-generic-expression '((nil "^spindle[ \t]+\\([A-Za-z_][A-Za-z0-9_]*\\)" 1))))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.weft\\'" . weft-mode))

(defvar eglot-server-programs)
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs `(weft-mode . ,(lambda (&rest _) (list weft-command "lsp")))))

(provide 'weft-mode)
;;; weft-mode.el ends here
