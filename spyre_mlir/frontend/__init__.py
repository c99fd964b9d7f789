"""From torch programs to the aten level: the only room that imports torch."""
