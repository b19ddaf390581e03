"""Training of the ECAPA-TDNN voiceprint by distillation; see README.md."""
