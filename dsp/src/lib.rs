//! Signal processing shared by the hub and the microphone node.
#![cfg_attr(not(feature = "std"), no_std)]
