#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runtimes whose code comes and goes in other ways than by call and return: their call trees are not deeper than their
# stacks, and hardly anything is open that was not seen to be entered. ONLY names those to be taken. A Java program
# whose own stack is 30 deep has no stack of more than 200 functions.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/programs.sh
need_large
wanted() { [[ -z ${ONLY:-} || " $ONLY " == *" $1 "* ]] && installed "$2"; }

# depth NAME HIGHEST CMD...: functions are open before the first instruction in a child of fork(), and in a
# fiber that is seen first in its middle.
depth() {
	local name=$1 most=$2 lowest highest longest
	shift 2
	# On some machines QEMU itself ends Erlang's by a signal: what it did before is judged.
	"$O/ptctl" record -o "$T/$name" -- "$@" >"$T/$name.out" 2>"$T/$name.err"
	[[ -e $T/$name/manifest ]] || { cat "$T/$name.err"; fail "$name"; }
	read -r lowest highest < <("$O/ptdecode" calls --json "$T/$name" | awk '
		match($0, /"depth": -?[0-9]+/) {
			depth = substr($0, RSTART + 9, RLENGTH - 9) + 0
			if (depth < lowest) lowest = depth
			if (depth > highest) highest = depth }
		END { print lowest + 0, highest + 0 }')
	longest=$("$O/ptdecode" export collapsed "$T/$name" | awk '{ n = gsub(/;/, ";"); if (n > most) most = n } END { print most + 1 }')
	echo "$name: depths from $lowest to $highest, stacks of up to $longest functions"
	((lowest >= -20 && highest > 5 && highest <= most && longest <= most + 20)) || fail "$name"
	drop "$name"
}

start_ptd
cat >"$T/Depth.java" <<'END'
public class Depth {
	interface Step { int step(int x); }
	static int deep(int n) { return n == 0 ? 1 : deep(n - 1) + (n & 3); }
	static int fail(int n) { if (n == 0) throw new RuntimeException(); return fail(n - 1); }
	public static void main(String[] arguments) throws Exception {
		int sum = 0;
		Step step = x -> x + 1;
		for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
			sum += deep(24);
			sum = step.step(sum);
			try { sum += fail(5); } catch (RuntimeException e) { sum++; }
		}
		Thread thread = new Thread(() -> deep(20));
		thread.start();
		thread.join();
		System.out.println(sum);
	}
}
END
if wanted java javac; then
	javac -d "$T" "$T/Depth.java" || fail "javac"
	depth java 180 java -XX:+UseSerialGC -cp "$T" Depth 3000
	depth java-int 180 java -Xint -XX:+UseSerialGC -cp "$T" Depth 20
	depth java-c1 180 java -Xcomp -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet \
		-XX:CompileCommand=compileonly,Depth::* -XX:+UseSerialGC -cp "$T" Depth 300
fi
! wanted guile guile || depth guile 120 guile --no-auto-compile -c '(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2)))))
	(display (f 15)) (call/cc (lambda (k) (k 1))) (catch (quote x) (lambda () (throw (quote x))) (lambda a 1))'
! wanted sbcl sbcl || depth sbcl 120 sbcl --noinform --non-interactive --eval '(progn
	(defun f (n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (print (f 15)) (handler-case (error "x") (error () 1)))'
! wanted luajit luajit || depth luajit 60 luajit -e 'local function f(n) if n < 2 then return n end return f(n-1) + f(n-2) end
	print(f(18)) local c = coroutine.wrap(function() for i = 1, 200 do coroutine.yield(i) end end)
	for i = 1, 100 do c() end for i = 1, 50 do pcall(function() error("y") end) end'
! wanted ruby ruby || depth ruby 200 ruby -e 'def f(n) n < 2 ? n : f(n-1) + f(n-2) end; puts f(12)
	begin; raise "x"; rescue; end; e = Enumerator.new { |y| 5.times { |i| y << i } }; puts e.next; puts e.next
	200.times { f = Fiber.new { Fiber.yield 1; 2 }; f.resume; f.resume }'
if wanted ocaml ocamlopt; then
	cat >"$T/deep.ml" <<-'END'
		exception E
		let rec f n = if n < 2 then n else f (n-1) + f (n-2)
		let rec g n = if n = 0 then raise E else 1 + g (n-1)
		let () = for _ = 1 to 300 do (try ignore (g 20) with E -> ()) done; print_int (f 15)
	END
	(cd "$T" && ocamlopt -o deep deep.ml) || fail "ocamlopt"
	depth ocaml 60 "$T/deep"
	depth ocaml-bytecode 60 ocaml "$T/deep.ml"
fi
if wanted erlang erl; then
	make_erlang <<-'END'
		-module(f).
		-export([sum/1, main/1]).
		sum(0) -> 0;
		sum(N) -> 1 + sum(N - 1).
		main([N]) ->
			[spawn(fun() -> sum(20) end) || _ <- lists:seq(1, 50)],
			catch throw(x),
			io:format("~p~n", [sum(list_to_integer(N))]), halt(0).
	END
	depth erlang 400 "${erlang[@]}" 100
fi
! wanted node node || depth node 500 node -e 'function f(n) { return n < 2 ? n : f(n-1) + f(n-2) } let s = 0
	for (let i = 0; i < 100; i++) { s += f(10); try { throw new Error("x") } catch (e) { s++ } }
	(async () => { for (let i = 0; i < 50; i++) await i; console.log(s) })()'
! wanted python python3 || depth python 300 /usr/bin/python3 -c 'def f(n): return n if n < 2 else f(n-1) + f(n-2)
print(f(14))
for i in range(100):
	try: raise ValueError
	except ValueError: pass'
exit 0
