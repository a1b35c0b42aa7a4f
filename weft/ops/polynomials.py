"""Coefficients of the polynomials behind sine, exponential, logarithm and arctangent, from the constant one upwards.

They are what scripts/polynomials.py computes and prints; tests/ops/test_polynomials.py holds them against it.
"""

# sin x = x + x³·P(x²), |x| ≤ π/2
SINE = (-0.16666657, 0.008333008, -0.00019805925, 2.598537e-06)
# cos x = 1 + x²·P(x²), |x| ≤ π/2
COSINE = (-0.4999993, 0.04166392, -0.0013855278, 2.3178778e-05)
# sin πx = x·P(x²), |x| ≤ ½
SINE_OF_HALF_TURNS = (3.1415925, -5.1677065, 2.5500314, -0.5980451, 0.07722012)
# cos πx = 1 + x²·P(x²), |x| ≤ ½
COSINE_OF_HALF_TURNS = (-4.9347954, 4.0584507, -1.3320941, 0.22008039)
# 2^x = 1 + x·P(x), |x| ≤ ½
POWER_OF_2 = (0.693147, 0.24022242, 0.055507213, 0.009671613, 0.001326453)
# e^x = 1 + x·P(x), |x| ≤ ln 2 / 2
POWER_OF_E = (0.9999997, 0.49999145, 0.16667645, 0.041898616, 0.008290287)
# ln(1 + x) = x + x²·P(x), |x| ≤ 1/3
LOGARITHM = (-0.49999934, 0.33333197, -0.25007838, 0.20011178, -0.16415969, 0.13995822, -0.15388547, 0.14026366)
# arctan x = x + x³·P(x²), |x| ≤ 1
ARCTANGENT = (-0.3333239, 0.19974212, -0.14041328, 0.09968474, -0.060203135, 0.024734063, -0.0048225354)
