"""Packs out of streaming models in the layout of sherpa-onnx."""
