"""What users hold: strided windows on GPU buffers, made, viewed, written and exchanged."""
