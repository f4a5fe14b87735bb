#!/usr/bin/env python3
"""MQSim (Tavakkol and others, FAST 2018) on the work of docs/wall.md.

It is not part of Floatgate and is not fetched or built here. Get github.com/CMU-SAFARI/MQSim, build it as its README
says, and name the folder: its program MQSim and its ssdconfig.xml are used.

    python3 validation/wall_mqsim.py FOLDER
"""

import argparse
import re
import sys

from common import GAP_US, PAGE_BYTES, PAGES, Refused, measured_run, program, row, twice, wall

RESERVE = 10  # the least it takes: as many as collections it runs at a time on a plane
SECTORS = PAGE_BYTES // 512

FLOW = """<?xml version="1.0" encoding="us-ascii"?>
<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Trace_Based>
<Priority_Class>HIGH</Priority_Class>
<Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>
<Channel_IDs>0</Channel_IDs><Chip_IDs>0</Chip_IDs><Die_IDs>0</Die_IDs><Plane_IDs>0</Plane_IDs>
<Initial_Occupancy_Percentage>0</Initial_Occupancy_Percentage>
<File_Path>work</File_Path>
<Percentage_To_Be_Executed>100</Percentage_To_Be_Executed>
<Relay_Count>1</Relay_Count>
<Time_Unit>NANOSECOND</Time_Unit>
</IO_Flow_Parameter_Set_Trace_Based></IO_Scenario></MQSim_IO_Scenarios>
"""


def configuration(text, work, policy):
    blocks = work.data_blocks + RESERVE
    values = {
        "Enabled_Preconditioning": "false",
        "Caching_Mechanism": "SIMPLE",
        "Ideal_Mapping_Table": "true",
        "GC_Exec_Threshold": f"{(RESERVE + 0.5) / blocks:.9f}",
        "GC_Hard_Threshold": f"{1.5 / blocks:.9f}",
        "GC_Block_Selection_Policy": policy,
        # One page less than is wanted of space would make addresses wrap; a little more does no harm.
        "Overprovisioning_Ratio": f"{1 - (work.logical + 1) / (blocks * PAGES):.9f}",
        "Dynamic_Wearleveling_Enabled": "false",
        "Static_Wearleveling_Enabled": "false",
        "Flash_Channel_Count": 1,
        "Chip_No_Per_Channel": 1,
        "Die_No_Per_Chip": 1,
        "Plane_No_Per_Die": 1,
        "Block_No_Per_Plane": blocks,
        "Page_No_Per_Block": PAGES,
        "Page_Capacity": PAGE_BYTES,
        "CMD_Suspension_Support": "NONE",
        "Block_Erase_Latency": 3_500_000,
    }
    values |= {f"Page_Read_Latency_{bit}SB": 50_000 for bit in "LCM"}
    values |= {f"Page_Program_Latency_{bit}SB": 500_000 for bit in "LCM"}
    for key, value in values.items():
        text, found = re.subn(rf"(<{key}>)[^<]*", rf"\g<1>{value}", text)
        if not found:
            raise Refused(f"ssdconfig.xml: no {key}")
    return text


def make(given):
    folder_there = program(given.folder)
    simulator, settings = program(folder_there / "MQSim"), (folder_there / "ssdconfig.xml").read_text()

    def play(work, folder, policy):
        (folder / "ssd.xml").write_text(configuration(settings, work, policy))
        (folder / "flow.xml").write_text(FLOW)

        def once(measured):
            with open(folder / "work", "w") as out:
                for i, page in enumerate(work.pages(measured)):
                    out.write(f"{(i + 1) * GAP_US * 1000} 0 {page * SECTORS} {SECTORS} 0\n")
            command = [simulator, "-i", "ssd.xml", "-w", "flow.xml"]
            said, seconds, mib = measured_run(command, folder)
            asked, served = map(int, re.search(r"generated: *(\d+) .*serviced: *(\d+)", said).groups())
            if served < 0.999 * asked:  # of some runs the last request is missing
                raise Refused(f"{policy}: it ended by itself with {asked - served} of {asked} requests not served")
            text = (folder / "flow_scenario_1.xml").read_text()
            get = lambda key: float(re.search(rf'{key}(?:="|>)([\d.]+)', text)[1])
            requests = get("Write_Request_Count")
            mean = get("<Device_Response_Time")
            return {"host": requests, "all": get("Issued_Flash_Program_CMD"), "us": mean * requests}, seconds, mib

        return twice(once)

    def rows(work, folder):
        for policy in given.policies.split(","):
            got, seconds, mib = play(work, folder, policy)
            us = got["us"] / got["host"]
            yield row(work, f"MQSim, {policy}", got["all"] - got["host"], int(got["host"]), us, seconds, mib)

    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--policies", metavar="NAMES", default="GREEDY,RGA", help="its names; FIFO stops by itself")
    sys.exit(wall(parser, make))
