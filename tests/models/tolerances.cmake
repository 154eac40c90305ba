# Largest |difference| / max(1, largest |expected|), as the networks' authors store them; 1e-5 for those not named.
set(tolerance_basic_pitch_nmp 1e-4)
set(tolerance_fastestdet 1e-4)
set(tolerance_nanogpt 1e-4)
set(tolerance_micro_kws_m_qdq 6e-3)
set(tolerance_squeezenet_fp16_winml 1e-2)
