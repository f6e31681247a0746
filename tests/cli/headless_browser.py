"""A browser controlled by tests, which check pages as users see them."""

import json
import os
import shutil
import subprocess

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser():
    """The browser's path; None if there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """A headless Chromium, controlled by the DevTools protocol over two pipes; each message ends
    with a zero byte."""

    def __init__(self, program, profile):
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", program, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--window-size=1400,1000", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.held = b""
        self.number = 0
        self.session = None
        self.events = []
        target = next(one for one in self.call("Target.getTargets")["targetInfos"]
                      if one["type"] == "page")
        self.session = self.call("Target.attachToTarget",
                                 {"targetId": target["targetId"], "flatten": True})["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.held:
            read = os.read(self.input, 1 << 16)
            assert read, "the browser went away"
            self.held += read
        message, self.held = self.held.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, parameters=None):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters or {}}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        self.call("Page.navigate", {"url": url})
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def resize(self, width):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})

    def press(self, key):
        code = {"ArrowDown": 40, "Home": 36, "Escape": 27}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent",
                      {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code})

    def complaints(self):
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event for event in self.events if event.get("method") in kinds]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def close(self):
        os.close(self.output)
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self.input)
