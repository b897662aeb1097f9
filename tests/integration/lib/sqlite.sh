# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SQLite's source ($sqlite/sqlite3.c), a program that runs a file of statements ($T/shell.c), and such a file
# ($T/script.sql).
. tests/integration/lib/npm.sh
need npm

fetch_npm better-sqlite3@11.8.1 4bc631c74f45c23cedf76372257390a71c21bb018bb1e2b0e608e56fa3249340 package/deps/sqlite3
sqlite=$T/npm.better-sqlite3/package/deps/sqlite3

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
