# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Two programs of others for test-lcov.sh, which sources it: SQLite, and bzip2.
. "$(dirname "$0")/lib/npm.sh"
need npm

fetch_npm better-sqlite3@11.8.1 4bc631c74f45c23cedf76372257390a71c21bb018bb1e2b0e608e56fa3249340 package/deps/sqlite3
sqlite=$T/npm.better-sqlite3/package/deps/sqlite3
fetch_npm node-bzip2@1.0.2 11c379cb0759102cd723176471eec575c5e12b72c9e4a57920d97116512050fd package/lib/bzip2
bzip=$T/npm.node-bzip2/package/lib/bzip2
# The package's build writes the one, and knows the other.
echo '#define BZ_VERSION "1.0.8"' >"$bzip/bz_version.h"
sed -i '1i #define BZ_UNIX 1' "$bzip/bzip2.c"

cat >"$T/shell.c" <<'END'
#include <stdio.h>
#include "sqlite3.h"

/* Runs the statements of a file. */
int main(int argc, char **argv)
{
	static char text[1 << 20];
	char *error = NULL;
	sqlite3 *db;
	FILE *f = fopen(argv[argc - 1], "r");

	if (!f || fread(text, 1, sizeof(text) - 1, f) == 0 || sqlite3_open(":memory:", &db) != SQLITE_OK)
		return 1;
	if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK)
		printf("%s\n", error);
	return sqlite3_close(db);
}
END
cat >"$T/script.sql" <<'END'
create table t(a integer primary key, b text, c real);
create index i on t(b);
with recursive r(n) as (select 1 union all select n + 1 from r where n < 40)
	insert into t(b, c) select 'x' || (n * 7919 % 101), n * 1.5 from r;
select count(*), sum(c), group_concat(b) from t where a > 5 and b like 'x%' group by a % 3 having count(*) > 1 order by 2 desc;
create view v as select a, b || '!' as d from t;
select d from v where d glob 'x1*' limit 3;
update t set c = c * 2 where a in (select a from t where c > 10);
delete from t where a % 4 = 0;
create trigger g after delete on t begin insert into t(b) values (old.b); end;
delete from t where a < 4;
begin; insert into t(b) values ('r'); rollback;
select json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), json_group_array(a) from t;
select row_number() over (order by c), lag(b) over (partition by a % 2 order by c) from t;
select date('2020-01-01', '+3 days'), printf('%5.2f|%s|%q', 3.14159, 'a', 'b''c'), hex(zeroblob(4)), round(2.567, 1);
create table u(x, y, foreign key(x) references t(a));
insert into u select a, a * 17 from t;
explain query plan select * from t join u on t.a = u.x left join t t2 on t2.a = u.y;
select * from t join u on t.a = u.x left join t t2 on t2.b = t.b;
alter table u add column z default 5;
vacuum; reindex; analyze; pragma integrity_check;
drop table u;
select nosuch from t;
END
head -c 16000 "$sqlite/sqlite3.c" >"$T/input"

# real NAME SOURCES COMMAND...: run the command, which gets the program as $P, and judge each of its sources.
real() {
	local name=$1 sources=$2 pairs=() source
	mkdir "$T/$name.gcov"
	# shellcheck disable=SC2086 # the sources are words
	(cd "$T/$name.gcov" && gcc -O0 -w --coverage -I "$sqlite" -o "$name" $sources -lm && P=./$name "${@:3}" >out &&
		gcov -- *.gcda) >"$T/log" 2>&1 || fail "gcov of $name: $(tail -n 20 "$T/log")"
	# shellcheck disable=SC2086
	gcc -O0 -w -g -I "$sqlite" -o "$T/$name" $sources -lm || fail "$name"
	P=$T/$name "$O/ptctl" record -o "$T/$name.rec" -- "${@:3}" >"$T/out" || fail "record $name"
	cmp "$T/out" "$T/$name.gcov/out" || fail "the runs of $name differ"
	"$O/ptdecode" export lcov --binary="$name" -o "$T/$name.info" "$T/$name.rec" || fail "lcov of $name"
	for source in $sources; do
		[[ ! -f $T/$name.gcov/${source##*/}.gcov ]] || pairs+=("$source" "$T/$name.gcov/${source##*/}.gcov")
	done
	tests/tools/coverage.py "$T/$name.info" "${pairs[@]}" || fail "$name"
	genhtml --branch-coverage -q -o "$T/$name.html" "$T/$name.info" >"$T/log" 2>&1 || fail "genhtml: $(cat "$T/log")"
}

real sqlite "$sqlite/sqlite3.c $T/shell.c" sh -c "\$P $T/script.sql"
real bzip2 "$(printf '%s ' "$bzip"/{blocksort,bzip2,bzlib,compress,crctable,decompress,huffman,randtable}.c)" \
	sh -c "\$P -c $T/input"
