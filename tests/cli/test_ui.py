"""The server of the calculator: who gets an answer, that it is that of the command, and how the server ends."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy as np
import pytest

from shufflebounds.cli import main
from shufflebounds.cli.browser.questions import answer, fields
from shufflebounds.cli.browser.server import Calculator
from shufflebounds.mechanisms import GaussianMechanism

QUESTIONS = [
    {"question": "epsilon", "mechanism": "stronger-clones", "users": "1_000_000", "local_eps": "4", "delta": "1e-8"},
    {"question": "epsilon", "mechanism": "gaussian", "sigma": "3", "delta": "1e-6", "times": "3"},
    {"question": "delta", "mechanism": "flipped-reports", "users": "300", "bins": "4", "flip": ".2", "view": "sums", "eps": "1"},
    {"question": "epsilon", "mechanism": "geometric", "budget": "0.5", "delta": "1e-6", "devices": "2"},
    {"question": "delta", "mechanism": "randomized-response", "budget": "2", "users": "1000", "eps": "0.1"},
    {"question": "users", "mechanism": "kary-response", "bins": "20", "local_eps": "3", "eps": "0.5", "delta": "1e-8"},
    {"question": "calibrate", "mechanism": "laplace", "eps": "1", "delta": "1e-9", "sensitivity": "2"},
]


@pytest.fixture(scope="module")
def calculator():
    with Calculator() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(server, path, method="GET", **headers):
    """Return the status, the headers and the body of the reply to a request."""
    connection = http.client.HTTPConnection(*server.server_address)
    connection.request(method, path, headers={"Host": f"127.0.0.1:{server.server_address[1]}", **headers})
    reply = connection.getresponse()
    out = reply.status, reply.headers, reply.read()
    connection.close()
    return out


@pytest.mark.parametrize("query", QUESTIONS, ids=lambda query: f"{query['question']}-{query['mechanism']}")
def test_answers_are_those_of_the_command(calculator, capsys, query):
    given = [f"--{name.replace('_', '-')}={text}" for name, text in query.items() if name not in ("question", "mechanism")]
    assert main([query["question"], query["mechanism"], *given, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    status, _, body = asked(calculator, f"/{calculator.token}/answer?{urllib.parse.urlencode(query)}")
    told = json.loads(body)
    assert status == 200
    assert told.pop("rests")
    assert told.pop("warnings") == []
    assert told == printed


BAD = [
    {"local_eps": "-4"}, {"users": "2.5"}, {"delta": "2"}, {"users": "many"}, {"local_eps": "1e400"}, {"times": "0"},
]


@pytest.mark.parametrize("wrong", BAD, ids=str)
def test_bad_input_has_the_text_of_the_command(calculator, capsys, wrong):
    query = {"question": "epsilon", "mechanism": "stronger-clones", "users": "1e6", "local_eps": "4", "delta": "1e-8", **wrong}
    given = [f"--{name.replace('_', '-')}={text}" for name, text in query.items() if name not in ("question", "mechanism")]
    with pytest.raises(SystemExit):
        main(["epsilon", "stronger-clones", *given])
    printed = capsys.readouterr().err
    status, _, body = asked(calculator, f"/{calculator.token}/answer?{urllib.parse.urlencode(query)}")
    assert status == 400
    text = json.loads(body)["error"]
    assert text.partition(": ")[2] in printed
    assert text.startswith(next(iter(wrong)))


@pytest.mark.parametrize(("query", "text"), [
    ({"question": "sum"}, "question='sum' must be one of"), ({}, "question='' must be one of"),
    ({"question": "epsilon", "mechanism": "none"}, "mechanism='none' must be one of"),
    ({"question": "users", "mechanism": "zero-sum"}, "has no answer to question='users'"),
    ({"question": "epsilon", "mechanism": "clones", "users": "10"}, "local_eps is missing"),
    ({"question": "tail", "mechanism": "binom_logsf", "k": "1", "n": "-2", "p": "0.5"}, "outside its domain"),
    # an option that names a file
    ({**QUESTIONS[0], "compose": "/etc/passwd"}, "field='compose' must be one of"), ({**QUESTIONS[0], "out": "x"}, "field='out'"),
])
def test_a_query_that_is_no_question_is_refused(query, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        answer(query)


def test_the_trade_off_function_is_that_of_the_profile(calculator):
    query = urllib.parse.urlencode({"question": "delta", "mechanism": "gaussian", "sigma": "2", "eps": "1"})
    columns = json.loads(asked(calculator, f"/{calculator.token}/tradeoff?{query}")[2])
    known = GaussianMechanism(2.0)
    for side in ("lower", "upper"):
        assert columns[f"beta_{side}"] == np.asarray(known.tradeoff(bound=side).beta(np.array(columns["alpha"]))).tolist()
    assert 0.1 in columns["alpha"]


def test_only_a_get_with_the_token_and_the_host_is_answered(calculator):
    port, token = calculator.server_address[1], calculator.token
    assert calculator.server_address[0] == "127.0.0.1"
    assert asked(calculator, f"/{token}/")[0] == asked(calculator, f"/{token}/", Host=f"localhost:{port}")[0] == 200
    for path in ("/", f"/{token}", f"/{token[:-1]}/", f"/{token}x/", "/%00/", "/\xe9/", f"/{token}/../{token}/server.py",
                 f"/{token}/server.py", f"/{token}/calculator.html", f"/{token}//etc/passwd"):
        status, _, body = asked(calculator, urllib.parse.quote(path, safe="/%"))
        assert status == 404, path
        assert len(body) < 100
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        assert asked(calculator, f"/{token}/", Host=host)[0] == 403
    for method in ("POST", "HEAD", "PUT", "OPTIONS"):
        assert asked(calculator, f"/{token}/", method)[0] == 501


def test_a_page_of_another_site_can_neither_read_nor_frame_the_reply(calculator):
    _, headers, _ = asked(calculator, f"/{calculator.token}/")
    assert "Access-Control-Allow-Origin" not in headers
    policy = headers["Content-Security-Policy"]
    assert all(rule in policy for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"))
    assert "unsafe" not in policy


def test_every_mechanism_has_questions_and_texts():
    told = fields()
    for name, one in told["mechanisms"].items():
        assert {"epsilon", "delta"} <= set(one["questions"]), name
        for names in one["questions"].values():
            texts = {**one["options"], **one["others"]}
            assert all(texts[option]["text"] for option in names["needed"] + names["optional"])
    assert len(told["tails"]) == 16


@pytest.mark.parametrize("port", ["1e6", "-1", "2.5"])
def test_ports_that_do_not_exist(capsys, port):
    with pytest.raises(SystemExit):
        main(["ui", f"--port={port}", "--no-browser"])
    assert "must be an integer in 0..65535" in capsys.readouterr().err


def test_a_port_that_is_taken(calculator, capsys):
    with pytest.raises(SystemExit):
        main(["ui", f"--port={calculator.server_address[1]}", "--no-browser"])
    assert "leave --port out for a free one" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_ctrl_c_ends_it_also_during_a_question_and_warnings_reach_the_page():
    process = subprocess.Popen(
        [sys.executable, "-m", "shufflebounds", "ui", "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    address = urllib.parse.urlsplit(re.search(r"http\S+", process.stdout.readline())[0])
    connection = http.client.HTTPConnection(address.netloc)
    for _ in range(2):
        connection.request("GET", f"{address.path}answer?question=epsilon&mechanism=laplace&scale=0.01&delta=1e-6")
        assert any("scale=" in text for text in json.loads(connection.getresponse().read())["warnings"])
    slow = "answer?question=calibrate&mechanism=shuffled-bits&users=1e5&eps=1&delta=1e-9&releases=2"
    connection.request("GET", address.path + slow)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert process.stderr.read() == "shufflebounds: interrupted\n"
    connection.close()
    process.stdout.close()
    process.stderr.close()
