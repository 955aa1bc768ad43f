// SPDX-License-Identifier: GPL-2.0
/*
 * ndshutdown - have a device of the nd bus shut down, and the machine stay up
 *
 * Loading it does to the device of that name what a reboot does.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/device.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nd.h>

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "Name of the device, as in /sys/bus/nd/devices");

static int ndshutdown_probe(struct device *dev)
{
	return -ENODEV;
}

/* For no device that there is; registering it tells which bus that is. */
static struct nd_device_driver ndshutdown_driver = {
	.probe = ndshutdown_probe,
	.drv = {
		.name = KBUILD_MODNAME,
	},
	.type = BIT(31),
};

static int __init ndshutdown_init(void)
{
	struct device *dev;
	int rc;

	rc = nd_driver_register(&ndshutdown_driver);
	if (rc)
		return rc;
	dev = bus_find_device_by_name(ndshutdown_driver.drv.bus, NULL, device);
	if (dev) {
		device_lock(dev);
		dev->bus->shutdown(dev);
		device_unlock(dev);
		put_device(dev);
	}
	driver_unregister(&ndshutdown_driver.drv);
	return dev ? 0 : -ENODEV;
}
module_init(ndshutdown_init);

static void __exit ndshutdown_exit(void)
{
}
module_exit(ndshutdown_exit);

MODULE_DESCRIPTION("Shutdown of one device of the nd bus");
MODULE_LICENSE("GPL");
