;;; What a performer does with a patch in Emacs; the answers are JSON in $ANSWERS.  -*- lexical-binding: t -*-

(require 'json)
(package-initialize)
(defvar answers nil)
(defun answer (key value) (push (cons key value) answers))

(setq eglot-connect-timeout 90 eglot-sync-connect 90 eglot-autoreconnect nil eldoc-idle-delay 1000)

(defun wait-for (what)
  "Wait until WHAT gives something."
  (with-timeout (90 nil)
    (let (found)
      (while (not (setq found (funcall what))) (accept-process-output nil 0.05))
      found)))

(defun shown ()
  "What flymake shows."
  (mapcar (lambda (each) (vector (line-number-at-pos (flymake-diagnostic-beg each))
                                 (flymake-diagnostic-text each)))
          (flymake-diagnostics)))

(defun settle ()
  "Wait until all is said about the text as it is."
  (eglot--signal-textDocument/didChange)
  (jsonrpc-request (eglot-current-server) :weft/settled nil :timeout 90))

(defun opened ()
  (answer 'mode (symbol-name major-mode))
  (require 'eglot)
  (apply #'eglot (eglot--guess-contact))
  (flymake-start)
  (answer 'mistakes (vconcat (wait-for #'shown))))

(defun formatted ()
  (erase-buffer)
  (insert "a=sin( me@x )\ndisplay(a,a,a)\n")
  (settle)
  (eglot-format-buffer)
  (answer 'formatted (buffer-string)))

(defun completed ()
  (goto-char (point-max))
  (insert "b = me@")
  (settle)
  (let ((capf (eglot-completion-at-point)))
    (answer 'completions (vconcat (mapcar #'substring-no-properties (all-completions "" (nth 2 capf))))))
  (delete-region (line-beginning-position) (point)))

(defun renamed ()
  (goto-char (point-min))
  (settle)
  (eglot-rename "wave")
  (answer 'renamed (buffer-string)))

(defun huge ()
  (erase-buffer)
  (dotimes (_ 2600) (insert "// " (make-string 96 ?x) "\n"))
  (settle)
  (answer 'huge (vconcat (wait-for #'shown))))

(defun killed ()
  (signal-process (jsonrpc--process (eglot-current-server)) 'KILL)
  (wait-for (lambda () (not (eglot-managed-p))))
  (erase-buffer)
  (insert "// typed after it\n")
  (save-buffer)
  (answer 'killed (with-temp-buffer (insert-file-contents "a.weft") (buffer-string))))

(defun indented ()
  (erase-buffer)
  (insert "spindle s(x) :: v {\nfor i in (1 to 3) {\nv += sin(\nx * i) /\ni\n}\n}\na =   // (\nif b then c else\nd\ndisplay(a)\n")
  (indent-region (point-min) (point-max))
  (answer 'indented (buffer-string)))

(defun coloured ()
  (erase-buffer)
  (insert "#fade 1\nspindle disc(x) :: v { v = sin(x) }\n// a comment\na<r> = disc(me@x) // 2 \"no\"\ndisplay(\"s // s\", pi)\n")
  (font-lock-ensure)
  (let (found)
    (dolist (word '("#fade" "spindle" "disc" "sin" "a comment" "s // s" "display" "pi)" "x) //"))
      (goto-char (point-min))
      (search-forward word)
      (push (cons word (format "%s" (get-text-property (match-beginning 0) 'face))) found))
    (answer 'faces found)))

(find-file "a.weft")
(condition-case failure
    (dolist (step (split-string (getenv "STEPS"))) (funcall (intern step)))
  (error (answer 'failure (format "%S" failure))))
(with-temp-file (getenv "ANSWERS") (insert (json-encode answers)))
(set-buffer-modified-p nil)
(kill-emacs 0)
