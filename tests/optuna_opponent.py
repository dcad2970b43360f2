#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Optuna's samplers on the problems of a suite, through `cosmic-search serve`.

Appends one JSON line a run to the file that `cosmic-search compare --runs` reads, so that Optuna's
samplers stand in the same tables.  A design that breaks a constraint costs Optuna nothing (the trial
is pruned), up to 50 proposals per evaluation of the budget: its search space is the raw knobs.

Usage: optuna_opponent.py PROGRAM SUITE.yaml RUNS.jsonl [SEEDS] [SAMPLER,...]
Exit status 77 (skipped) when this interpreter has no optuna.
"""
import json
import os
import subprocess
import sys
import time

try:
    import optuna
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROPOSALS_PER_EVALUATION = 50

SAMPLERS = {
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True),
    "nsga2": lambda seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=50),
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
        self.knobs = self.call({"cmd": "describe"})["knobs"]

    def call(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if not answer["ok"]:
            raise RuntimeError(answer["error"])
        return answer

    def evaluate(self, index):
        answer = self.call({"cmd": "evaluate", "designs": [{"index": index}]})
        return answer["trials"][0]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def value_of(trial):
    """Objective of a feasible trial, None otherwise."""
    if not trial["feasible"]:
        return None
    return next(iter(trial["objectives"].values()))


def run(environment, sampler, maximize, evaluations):
    """One run: the improvements found, proposals made, and seconds inside the sampler."""
    study = optuna.create_study(sampler=sampler, direction="maximize" if maximize else "minimize")
    seen, trace, spent, proposals, inside = {}, [], 0, 0, 0.0
    while spent < evaluations and proposals < evaluations * PROPOSALS_PER_EVALUATION:
        start = time.process_time()
        asked = study.ask()
        index = tuple(asked.suggest_categorical(k["name"], list(range(len(k["values"]))))
                      for k in environment.knobs)
        inside += time.process_time() - start
        proposals += 1
        if index not in seen:
            seen[index] = environment.evaluate(list(index))
            spent += seen[index]["status"] != "invalid"
            value = value_of(seen[index])
            if value is not None and (not trace or (value > trace[-1][1]) == maximize
                                      and value != trace[-1][1]):
                trace.append([spent, value])
        value = value_of(seen[index])
        start = time.process_time()
        if value is None:
            study.tell(asked, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(asked, value)
        inside += time.process_time() - start
    return trace, proposals, inside


def main(program, suite_path, runs_path, seeds=None, samplers="tpe,nsga2,random"):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with open(suite_path, encoding="utf-8") as file:
        suite = yaml.safe_load(file)
    done = set()
    if os.path.exists(runs_path):
        with open(runs_path, encoding="utf-8") as file:
            done = {(r["problem"], r["agent"], r["seed"]) for r in map(json.loads, file)}
    for problem in suite["problems"]:
        psa = os.path.join(os.path.dirname(suite_path), problem["psa"])
        for name in samplers.split(","):
            for seed in range(1, int(seeds or suite["seeds"]) + 1):
                if (problem["label"], "optuna_" + name, seed) in done:
                    continue
                environment = Environment(program, psa, problem, seed)
                maximize = environment.call({"cmd": "describe"})["objectives"][0]["maximize"]
                trace, proposals, inside = run(environment, SAMPLERS[name](seed), maximize,
                                               suite["evaluations"])
                environment.close()
                with open(runs_path, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"problem": problem["label"], "agent": "optuna_" + name,
                                           "seed": seed, "evaluations": suite["evaluations"],
                                           "proposals": proposals, "agent_s": inside,
                                           "trace": trace}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
