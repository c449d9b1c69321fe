"""nginx only reads: prints `KEY<TAB>ANSWER` for every key; consistent=1."""
import os
import shutil

import proxy
import writer


def upstream():
    for host, port, weight, _ in writer.servers():
        address = f"unix:{host}" if port == 0 else f"{host}:{port}"
        yield f"    server {address} weight={weight} max_fails=0;"


def configuration(directory):
    method = "hash $memcached_key" + (" consistent" if "consistent" in writer.options() else "")
    return f"""daemon off;
worker_processes 1;
{"user root;" if os.geteuid() == 0 else ""}
pid {directory}/pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  default_type text/plain;
  upstream cache {{
    {method};
{chr(10).join(upstream())}
  }}
  server {{
    listen unix:{directory}/proxy.sock;
    location / {{
      set $memcached_key $http_x_key;
      memcached_pass cache;
    }}
  }}
}}
"""


def answer_to(key, connection, answers):
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Key: " + key.encode() + b"\r\n\r\n")
    status = answers.readline().split()[1]
    length = 0
    while (line := answers.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    body = answers.read(length).decode()
    if status != b"200":
        raise SystemExit(f"{key}: HTTP {status.decode()}")
    return body


def main():
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    with proxy.running("nginx", configuration, lambda directory: [program or "nginx", "-e", "stderr", "-p", directory, "-c",
                                                                 os.path.join(directory, "config")]) as connection:
        answers = connection.makefile("rb")
        for key, _ in writer.pairs():
            print(key, answer_to(key, connection, answers), sep="\t")


main()
