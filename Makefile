# Shortcuts; tools/dev.py does the work.
.PHONY: setup demo test suites check fix gen
setup demo test suites check fix gen:
	@python3 tools/dev.py $@
