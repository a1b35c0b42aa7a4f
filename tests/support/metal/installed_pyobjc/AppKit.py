"""What `import AppKit` finds in a process that has this folder on its path. GLFW then has what it has on macOS."""

from __future__ import annotations

import sys

import glfw

from tests.support.metal.apple import cocoa_window, process_modules

glfw.get_cocoa_window = cocoa_window
sys.modules[__name__] = process_modules()["AppKit"]
