"""Other layouts around changes of layout, tried on parts of a program and priced by the planner."""
