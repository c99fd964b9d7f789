"""Shape and number helpers shared by the bodies of composed ops."""
