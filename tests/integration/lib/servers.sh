# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Servers that serve 1000 requests, once by themselves and once recorded; scripts source it after common.sh. The clients
# are not recorded.
#
#	serve redis
#
# fails unless the server answers all requests both times, and what is decoded of it equals the log without a gap, by
# both engines. It prints a row of a table.

N_REQUESTS=1000

PATH=$PATH:$(realpath "$O")/servers/usr/sbin

# Some servers refuse to run as root, and none needs it.
as_self=()
[[ $EUID != 0 ]] || as_self=(unshare --user --map-user=1000 --map-group=1000)

# Where curl finds them.
socket=$T/socket

# get PATH...: how many of these are answered with status 200, by 4 clients at once.
get() {
	curl --no-progress-meter --parallel --parallel-max 4 --unix-socket "$socket" -o /dev/null -w '%{http_code}\n' \
		"${@/#/http://localhost}" 2>"$T/curl.err" | grep -cx 200
}

answers_http() { [[ $(get /) == 1 ]]; }

# --- one function a server: how it is started ($command), that it is ready, what it is asked (prints how many requests
# were served), and how it is stopped; in the directory $D ----------------------------------------------------------

served() { get "/[1-$N_REQUESTS]"; }
stop() { kill -TERM "$(<"$D/pid")"; }
ready() { answers_http; }

serve_redis() {
	# Their package would start it; it is a name of a program of redis-tools.
	ln -s "$(command -v redis-check-rdb)" "$D/redis-server"
	command=("$D/redis-server" --port 0 --unixsocket "$socket" --save "" --pidfile "$D/pid" --dir "$D" --daemonize no)
	ready() { redis-cli -s "$socket" ping | grep -qx PONG; }
	served() {
		seq $N_REQUESTS | sed 's/.*/INCR requests/' | redis-cli -s "$socket" >/dev/null
		redis-cli -s "$socket" get requests
	}
}

serve_haproxy() {
	cat >"$D/conf" <<-EOT
		defaults
			mode http
			timeout connect 1m
			timeout client 1m
			timeout server 1m
		frontend web
			bind unix@$socket
			http-request return status 200 content-type text/plain string "a page"
	EOT
	# A master process would execute itself as soon as it has a worker, and die by a signal meanwhile.
	command=(haproxy -db -f "$D/conf")
	stop() { kill -USR1 "$(pgrep -P "$server" || echo "$server")"; }
}

nginx_conf() {
	cat <<-EOT
		daemon off;
		worker_processes 2;
		pid $D/pid;
		error_log $D/error;
		events { }
		http {
			access_log off;
			client_body_temp_path $D; proxy_temp_path $D; fastcgi_temp_path $D; uwsgi_temp_path $D; scgi_temp_path $D;
			server { listen unix:$socket; location / { $1 } }
		}
	EOT
}

serve_nginx() {
	nginx_conf 'return 200 "a page";' >"$D/conf"
	command=(nginx -e "$D/error" -c "$D/conf")
}

# It is asked by an nginx that is not recorded.
serve_php() {
	local fpm
	fpm=$(compgen -c php-fpm | sort | head -n 1)
	cat >"$D/fpm" <<-EOT
		[global]
		pid = $D/pid
		error_log = $D/error
		[www]
		listen = $D/fastcgi
		pm = static
		pm.max_children = 2
	EOT
	echo '<?php $a = range(1, 50); shuffle($a); sort($a); echo md5(implode(",", $a));' >"$D/page.php"
	command=("$fpm" -F -n -y "$D/fpm")
	ready() {
		[[ -S $D/fastcgi ]] || return
		[[ -e $D/front.pid ]] || front
		answers_http
	}
	front() {
		nginx_conf "fastcgi_pass unix:$D/fastcgi; fastcgi_param SCRIPT_FILENAME $D/page.php; fastcgi_param REQUEST_METHOD GET;" |
			sed "s,^pid .*,pid $D/front.pid;," >"$D/conf"
		"${as_self[@]}" nginx -e "$D/error" -c "$D/conf" &
		await test -s "$D/front.pid"
	}
	stop() {
		kill -TERM "$(<"$D/front.pid")"
		kill -TERM "$(<"$D/pid")"
	}
}

serve_gunicorn() {
	cat >"$D/page.py" <<-'EOT'
		def app(environ, start_response):
		    page = ("%d\n" % sum(range(100))).encode()
		    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(page)))])
		    return [page]
	EOT
	command=(/usr/bin/python3 /usr/bin/gunicorn --bind "unix:$socket" --workers 2 --pid "$D/pid" --chdir "$D" page:app)
}

serve_java() {
	cat >"$D/Server.java" <<-'EOT'
		import com.sun.net.httpserver.HttpServer;
		import java.net.InetSocketAddress;
		import java.nio.file.*;
		import java.util.concurrent.Executors;

		public class Server {
			public static void main(String[] args) throws Exception {
				HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
				s.setExecutor(Executors.newFixedThreadPool(4));
				s.createContext("/", exchange -> {
					byte[] page = ("a page " + exchange.getRequestURI()).getBytes();
					exchange.sendResponseHeaders(200, page.length);
					exchange.getResponseBody().write(page);
					exchange.close();
				});
				s.start();
				// At SIGTERM it would end with 143.
				Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
				Files.writeString(Path.of(args[0], "pid"), "" + ProcessHandle.current().pid());
				Files.writeString(Path.of(args[0], "port"), "" + s.getAddress().getPort());
			}
		}
	EOT
	javac -d "$D" "$D/Server.java" 2>"$T/err" || fail "javac: $(<"$T/err")"
	command=(java -cp "$D" Server "$D")
	get_port() { curl --no-progress-meter -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$(<"$D/port")$1" | grep -cx 200; }
	ready() { [[ -s $D/port && $(get_port /) == 1 ]]; }
	served() { get_port "/[1-$N_REQUESTS]"; }
}

serve_node() {
	cat >"$D/server.js" <<-'EOT'
		const cluster = require("cluster"), [socket, pid] = process.argv.slice(2);
		if (cluster.isPrimary) {
			cluster.fork();
			cluster.fork();
			require("fs").writeFileSync(pid, String(process.pid));
			process.on("SIGTERM", () => cluster.disconnect());
		} else {
			require("http").createServer((request, response) => response.end("a page " + request.url)).listen(socket);
		}
	EOT
	command=(node "$D/server.js" "$socket" "$D/pid")
}

# Of its database that was made by the last command.
serve_postgresql() {
	command=("$postgres/postgres" -D "$D/data" -k "$D" -c listen_addresses= -c fsync=off)
	"${as_self[@]}" "$postgres/initdb" -D "$D/data" -U user --no-sync -A trust >"$D/initdb.out" 2>&1 ||
		fail "initdb: $(tail -n 3 "$D/initdb.out")"
	ready() { psql -h "$D" -U user -c 'select 1' postgres; }
	served() {
		pgbench -h "$D" -U user -i -q postgres >"$D/pgbench" 2>&1 || tail -n 5 "$D/pgbench" >&2
		pgbench -h "$D" -U user -c 4 -t $((N_REQUESTS / 4)) postgres 2>&1 |
			sed -nE 's,^number of transactions actually processed: ([0-9]+)/.*,\1,p'
	}
	stop() { kill -INT "$(head -n 1 "$D/data/postmaster.pid")"; }
}

# It serves as many requests as databases it makes.
serve_initdb() {
	command=("$postgres/initdb" -D "$D/data" -U user --no-sync -A trust)
	ready() { [[ -s $D/data/PG_VERSION ]]; }
	served() {
		wait "$server"
		ls "$D/data/base" | grep -cxE '[0-9]+'
	}
	stop() { :; }
}

postgres=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)

# --- both ways ---------------------------------------------------------------------------------------------------

# A server that has ended is not waited for.
ready_or_ended() { ready || ! kill -0 "$server"; }

# run_server NAME COMMAND...: start it by that command, ask it, stop it. Sets $n to what it served.
run_server() {
	local name=$1 command=() status
	shift
	D=$T/$name.dir
	rm -rf "$D" "$socket"
	mkdir "$D"
	"serve_$name"
	"${as_self[@]}" "$@" "${command[@]}" >"$T/$name.out" 2>"$T/$name.err" &
	server=$!
	await ready_or_ended
	ready >/dev/null 2>&1 || { tail -n 20 "$T/$name".*; fail "$name: it does not answer"; }
	n=$(served)
	stop
	wait "$server"
	status=$?
	[[ $status == 0 ]] || { tail -n 20 "$T/$name".{out,err}; fail "$name: exit status $status"; }
}

# In a shell of its own, in which its functions are.
serve() { (both "$1"); }

both() {
	local engine n n_native
	run_server "$1"
	n_native=$n
	start_ptd AuxSize=1G
	mkdir "$T/$1.log"
	PTD_EMU_LOG=$T/$1.log run_server "$1" "$O/ptctl" record -o "$T/$1" --
	for engine in ${PTD_ENGINES:-flow insn}; do
		"$O/tools/exact" -e $engine "$T/$1" "$T/$1.log" >"$T/exact" || { tail -n 20 "$T/exact"; fail "$1, $engine: not what ran"; }
		! grep '^gap:' "$T/exact" || fail "$1, $engine: gaps"
	done
	printf '%-12s %6d served natively, %6d recorded; %s; 0 gaps\n' "$1" "$n_native" "$n" "$(tail -n 1 "$T/exact" | cut -d , -f 1-4)"
	[[ $n == "$n_native" && $n -gt 0 ]] || fail "$1: it did not serve as many requests as by itself"
	stop_ptd
	drop "$1"
}
