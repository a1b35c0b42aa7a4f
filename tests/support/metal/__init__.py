"""Metal without a Mac: a stand-in for its standard library, a strict check of kernels, and a device that runs them on
the processor. On a Mac the same tests run on its own device."""
