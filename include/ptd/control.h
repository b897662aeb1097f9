/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The control interface
 *
 * Clients speak D-Bus with the recorder over a socket, peer to peer, without a bus between them.
 * `gdbus introspect` and `gdbus call --address unix:path=…` can be clients. Clients
 * are root, the recorder's own user, and members of the group PTD_CONTROL_GROUP; others cannot
 * connect.
 *
 * org.ptd.Recorder1, object /org/ptd/Recorder1:
 *
 *	GetStatus() -> a{sv}			what is being recorded; keys in ptd(8)
 *	OpenSource(a{sv} options)		the software source's shared memory, to which a
 *		-> (s name, h pool)		plugin of QEMU writes; PTD_ERROR_NOT_EMULATED where
 *						hardware is recorded. Option: "timing" b, the
 *						plugin is going to write MTC and CYC packets
 *	Pause(), Resume()			give hardware up to others, and take it again: what
 *						the rings held is lost; PTD_ERROR_BUSY while a
 *						snapshot copies them, PTD_ERROR_NOT_HARDWARE under
 *						the software source
 *	TakeSnapshot(a{sv} options) -> (s id)	queue one; PTD_ERROR_BUSY if the queue is full.
 *						Options: "pid" u, only what this process and its
 *						descendants ran; "cgroup" s, only what the processes
 *						of a control group, given by its path or its name,
 *						and their descendants ran; "cpus" s, only these
 *						CPUs, such as "0-3,8"; "since" t, only what was
 *						recorded since the source was opened last before
 *						that time (CLOCK_MONOTONIC, ns). For the manifest
 *						alone: "command" s, "command_pid" u, what ran, and
 *						"started" t, since when, on that clock; "trigger" s,
 *						"trigger_tid" u, "trigger_time" t, the condition
 *						that held, in which thread, and when
 *	WaitSnapshot(s id) -> (a{sv} result)	answered when the job is done: "id" s, "path" s,
 *						"bytes" t, …; the job's error if it failed
 *	ListSnapshots() -> aa{sv}		what the spool holds, oldest first
 *	OpenSnapshot(s id) -> h			its directory, read-only
 *	RemoveSnapshot(s id)			remove it; PTD_ERROR_KEPT if it is kept
 *	KeepSnapshot(s id, b keep)		keep it whatever the limits are, or stop doing so;
 *						"kept" b of ListSnapshots says so
 *	AddTrigger(s condition, a{sv} options)	take a snapshot when the condition holds, in
 *		-> (u id)			whatever thread of the machine:
 *						"enter:FUNCTION@PATH",
 *						"return:FUNCTION@PATH", "signal:NAME",
 *						"exit:STATUS", "exit:failure", "core",
 *						"oom". Options:
 *						"comm" s, only in threads of that name; "count" u,
 *						of snapshots; "interval" t, ns from one hit to the
 *						next that counts; "delay" t, ns from the hit to the
 *						snapshot
 *	RemoveTrigger(u id)			PTD_ERROR_NO_TRIGGER if there is none
 *	ListTriggers() -> aa{sv}		what is waited for
 *	Reload()				read the settings again; PTD_ERROR_FAILED if they
 *						cannot be read
 */

#define PTD_CONTROL_SOCKET_DEFAULT "/run/ptd/control"
/* The group whose members may connect, besides root and the recorder's own user. */
#define PTD_CONTROL_GROUP "ptd"

#define PTD_CONTROL_OBJECT    "/org/ptd/Recorder1"
#define PTD_CONTROL_INTERFACE "org.ptd.Recorder1"

/* MESSAGE_ID of entries of the journal; ptd(8) has their fields. */
#define PTD_MESSAGE_CALLER   "2b0463e9c42d44a49a6e058b5b3fa908" /* what a client asked for */
#define PTD_MESSAGE_TAKEN    "28b67b3a8f554c269d4b524732a7b017" /* a snapshot was written */
#define PTD_MESSAGE_FAILED   "eb0ce1547f354476979680f4cc92fc5d" /* a snapshot was not */
#define PTD_MESSAGE_REMOVED  "906a0d7622e1470a9c68ee8912cf64df" /* a snapshot, to make room */
#define PTD_MESSAGE_NOT_KEPT "c2acf5e0a2154b23b5094fee1bae57ed" /* no copy of executed code */
#define PTD_MESSAGE_LOST     "282425ba80e0479389774527695098d2" /* records of tasks, or code */
#define PTD_MESSAGE_CPU      "24211f64fbfe42e381cc980427011cd4" /* a CPU is not recorded */

#define PTD_ERROR_BUSY         "org.ptd.Error.Busy"
#define PTD_ERROR_NOT_EMULATED "org.ptd.Error.NotEmulated"
#define PTD_ERROR_NOT_HARDWARE "org.ptd.Error.NotHardware"
#define PTD_ERROR_NO_SNAPSHOT  "org.ptd.Error.NoSuchSnapshot"
#define PTD_ERROR_KEPT         "org.ptd.Error.Kept"
#define PTD_ERROR_NO_TRIGGER   "org.ptd.Error.NoSuchTrigger"
#define PTD_ERROR_FAILED       "org.ptd.Error.Failed"
