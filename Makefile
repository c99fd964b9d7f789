# Shortcuts; tools/dev.py does the work.
.PHONY: setup demo test check fix gen
setup demo test check fix gen:
	@python3 tools/dev.py $@
