# Shortcuts; tools/dev.py does the work.
.PHONY: setup demo test suites check all fix gen
setup demo test suites check all fix gen:
	@python3 tools/dev.py $@
