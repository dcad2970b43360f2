#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Optuna's samplers on the problems of a suite, through `cosmic-search serve`.

Appends one JSON line a run to the file that `cosmic-search compare --resume` reads, so that Optuna's
samplers stand in the same tables.  Optuna is treated well: it gets the encoded space of our own agents,
whole numbers for ordered variables and categories for the rest; what breaks a constraint is repaired
by the environment, so that every proposal is a valid design; a design that does not fit in memory
costs an evaluation and its excess is told as a constraint (constraints_func); a design proposed again
is told again and costs nothing.

Usage: optuna_opponent.py PROGRAM SUITE.yaml RUNS.jsonl [SEEDS] [SAMPLER,...]
Exit status 77 (skipped) when this interpreter has no optuna.
"""
import json
import os
import subprocess
import sys
import time
import warnings

try:
    import optuna
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROPOSALS_PER_EVALUATION = 2  # a sampler that repeats itself ends here

# Our choices are 0, 1, ...: Optuna need not search its list for the index of each value it has seen.
optuna.distributions.CategoricalDistribution.to_internal_repr = lambda self, choice: choice


def excess(trial):
    """Constraints of a trial: at most 0 when it holds them."""
    return [trial.user_attrs["violation"]]


SAMPLERS = {
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed, constraints_func=excess),
    "tpe_multivariate": lambda seed: optuna.samplers.TPESampler(
        seed=seed, constraints_func=excess, multivariate=True),
    "nsga2": lambda seed: optuna.samplers.NSGAIISampler(
        seed=seed, constraints_func=excess, population_size=50),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


class Environment:
    """One conversation with `serve`."""

    def __init__(self, program, psa, problem, seed):
        command = [program, "serve", psa, "--seed", str(seed), "--jobs", "1"]
        if "objective" in problem:
            command += ["--objective", problem["objective"]]
        if "stacks" in problem:
            command += ["--stack", ",".join(problem["stacks"])]
        for fix in problem.get("fix", []):
            command += ["--fix", fix]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        described = self.call({"cmd": "describe"})
        self.variables = described["variables"]
        self.maximize = described["objectives"][0]["maximize"]

    def call(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if not answer["ok"]:
            raise RuntimeError(answer["error"])
        return answer

    def evaluate(self, point):
        answer = self.call({"cmd": "evaluate", "designs": [{"point": point}]})
        return answer["trials"][0]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def suggest(asked, variable):
    name, size = variable["name"], variable["size"]
    if variable["kind"] == "ordered":
        return asked.suggest_int(name, 0, size - 1)
    return asked.suggest_categorical(name, list(range(size)))


def run(environment, sampler, evaluations):
    """One study: its improvements, proposals, and processor time inside Optuna."""
    maximize = environment.maximize
    study = optuna.create_study(sampler=sampler, direction="maximize" if maximize else "minimize")
    trace, spent, proposals, inside, worst = [], 0, 0, 0.0, 0.0
    while spent < evaluations and proposals < evaluations * PROPOSALS_PER_EVALUATION:
        start = time.process_time()
        asked = study.ask()
        point = [suggest(asked, v) for v in environment.variables]
        inside += time.process_time() - start
        proposals += 1
        trial = environment.evaluate(point)
        spent += not trial.get("cached", False)
        value = next(iter(trial["objectives"].values())) if trial["feasible"] else None
        if value is not None:
            worst = min(worst, value) if maximize else max(worst, value)
            if not trace or (value > trace[-1][1] if maximize else value < trace[-1][1]):
                trace.append([spent, value])
        start = time.process_time()
        asked.set_user_attr("violation", 0.0 if value is not None else max(trial["violation"], 1e-9))
        study.tell(asked, worst if value is None else value)
        inside += time.process_time() - start
    return trace, proposals, inside


def main(program, suite_path, runs_path, seeds=None, samplers="tpe,nsga2,random"):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    with open(suite_path, encoding="utf-8") as file:
        suite = yaml.safe_load(file)
    done = set()
    if os.path.exists(runs_path):
        with open(runs_path, encoding="utf-8") as file:
            done = {(r["problem"], r["agent"], r["seed"]) for r in map(json.loads, file)}
    for seed in range(1, int(seeds or suite["seeds"]) + 1):
        for problem in suite["problems"]:
            psa = os.path.join(os.path.dirname(suite_path), problem["psa"])
            for name in samplers.split(","):
                if (problem["label"], "optuna_" + name, seed) in done:
                    continue
                environment = Environment(program, psa, problem, seed)
                trace, proposals, inside = run(environment, SAMPLERS[name](seed),
                                               suite["evaluations"])
                environment.close()
                with open(runs_path, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"problem": problem["label"], "agent": "optuna_" + name,
                                           "seed": seed, "evaluations": suite["evaluations"],
                                           "proposals": proposals, "agent_s": inside,
                                           "trace": trace}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
