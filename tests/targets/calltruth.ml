(* SPDX-License-Identifier: LGPL-2.1-or-later *)

(* As calltruth.c, for OCaml: recursion, tail calls, exceptions through 10 functions, with and without
   a trace, out of nested handlers, and through a callback from C (call_back calls its first argument). *)

external call_back : (int -> int) -> int -> int = "call_back"

let notes = Array.make 4096 ' '
let names = Array.make 4096 ""
let n = ref 0

let[@inline never] say what name =
  notes.(!n) <- what;
  names.(!n) <- name;
  incr n

let sum = ref 0

let[@inline never] leaf x =
  say '+' "leaf";
  sum := !sum + x;
  say '-' "leaf";
  !sum

let[@inline never] rec recurse x =
  say '+' "recurse";
  let y = if x = 0 then leaf 1 else recurse (x - 1) + 1 in
  say '-' "recurse";
  y

let[@inline never] tail_end x =
  say '+' "tail_end";
  let y = leaf x in
  say '-' "tail_end";
  y

let[@inline never] tail_first x =
  say '+' "tail_first";
  sum := !sum + 1;
  say '-' "tail_first";
  tail_end (x + 1)

exception Odd of int

let[@inline never] rec descend x =
  say '+' "descend";
  let y =
    if x > 0 then descend (x - 1) + 1
    else begin
      for _ = 1 to 10 do say '-' "descend" done;
      if !sum land 1 = 0 then raise_notrace (Odd x) else raise (Odd x)
    end
  in
  y

let[@inline never] catch x =
  say '+' "catch";
  let y = try descend 9 with Odd z -> z + x in
  let z = leaf y in
  say '-' "catch";
  z

(* The handler that takes it is in an outer activation of the same function. *)
let[@inline never] rec nest x =
  say '+' "nest";
  (try
     if x > 0 then ignore (nest (x - 1)) else ignore (descend 9)
   with
   | Not_found -> sum := 0
   | Odd _ when x = 3 -> sum := !sum + 1
   | Odd _ as e ->
     say '-' "nest";
     raise e);
  ignore (leaf x);
  say '-' "nest";
  x

let[@inline never] called x =
  say '+' "called";
  let y = if x > 2 then (say '-' "called"; raise (Odd x)) else leaf x in
  say '-' "called";
  y

let[@inline never] call x =
  say '+' "call";
  let y = try call_back called x with Odd z -> z in
  say '-' "call";
  y

let () =
  for i = 0 to 20 do
    ignore (recurse i);
    ignore (tail_first i);
    ignore (catch i);
    ignore (nest 5);
    ignore (call (i mod 5))
  done;
  ignore (List.sort (fun a b -> ignore (leaf a); compare a b) [ 3; 1; 2; 5; 4 ]);
  let f = open_out Sys.argv.(1) in
  for i = 0 to !n - 1 do
    Printf.fprintf f "1 %c%s\n" notes.(i) names.(i)
  done;
  close_out f
