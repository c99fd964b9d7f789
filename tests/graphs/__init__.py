"""Random torch programs of many operators, compiled and compared with torch."""
